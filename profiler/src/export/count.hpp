// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "analyse/verify.hpp"
#include "capture/reader.hpp"
#include "export/chrome.hpp"

namespace opscope::exporter {

/// What write_chrome writes of `source`, counted from its very output; nothing is stored.
[[nodiscard]] inline analyse::trace_census count(const capture::capture& source) {
  analyse::census_stream counted;
  write_chrome(source, counted);
  return counted.census();
}

/// The whole verification of a capture, the export's counts included.
[[nodiscard]] inline analyse::verification verify(const capture::capture& source) {
  return analyse::verify(source, count(source));
}

}  // namespace opscope::exporter
