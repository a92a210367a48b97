// SPDX-License-Identifier: Apache-2.0
#include "opscope/export.hpp"

#include "capture/reader.hpp"
#include "export/export_file.hpp"

namespace opscope {

void export_trace(const std::filesystem::path& capture, const std::filesystem::path& out,
                  bool force) {
  const auto opened = capture::capture::open(capture);
  if (!opened) throw error(opened.error().message);
  exporter::export_file(opened.value(), out, force);
}

}  // namespace opscope
