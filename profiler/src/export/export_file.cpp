// SPDX-License-Identifier: Apache-2.0
#include "export/export_file.hpp"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <string>
#include <system_error>

#include "export/gzip_stream.hpp"
#include "opscope/error.hpp"

namespace opscope::exporter {
namespace {

[[noreturn]] void refuse(const std::filesystem::path& out, const std::string& why,
                         const std::string& remedy) {
  throw error("export to " + out.string() + ": " + why + " (" + remedy + ")");
}

/// The file while it is being written; gone unless it was published.
class partial_file {
 public:
  explicit partial_file(const std::filesystem::path& out)
      : path_{out.string() + ".partial-" + std::to_string(getpid())} {}
  partial_file(const partial_file&) = delete;
  partial_file& operator=(const partial_file&) = delete;
  ~partial_file() {
    std::error_code ignored;
    if (!published_) std::filesystem::remove(path_, ignored);
  }

  [[nodiscard]] const std::filesystem::path& path() const noexcept { return path_; }

  void publish(const std::filesystem::path& out) {
    std::error_code failed;
    std::filesystem::rename(path_, out, failed);
    if (failed) refuse(out, failed.message(), "choose a path that can be written");
    published_ = true;
  }

 private:
  std::filesystem::path path_;
  bool published_ = false;
};

}  // namespace

const char* export_suffixes() noexcept { return ".json or .json.gz"; }

chrome_report export_file(const capture::capture& source, const std::filesystem::path& out,
                          bool force) {
  const auto name = out.filename().string();
  const bool compressed = name.ends_with(".json.gz");
  if (!compressed && !name.ends_with(".json")) {
    refuse(out, "unknown suffix", std::string{"use "} + export_suffixes());
  }
  std::error_code unknown;
  if (!force && std::filesystem::exists(out, unknown)) {
    refuse(out, "the file exists", "choose another name, or pass --force");
  }
  partial_file partial{out};
  std::ofstream file{partial.path(), std::ios::binary | std::ios::trunc};
  if (!file) refuse(out, std::strerror(errno), "choose a path that can be written");
  chrome_options options;
  options.trace_name = name;
  chrome_report report;
  if (compressed) {
    gzip_stream gzip{file};
    report = write_chrome(source, gzip, options);
    gzip.finish();
  } else {
    report = write_chrome(source, file, options);
  }
  file.close();
  if (!file) refuse(out, std::strerror(errno), "free some space, or choose another path");
  partial.publish(out);
  return report;
}

}  // namespace opscope::exporter
