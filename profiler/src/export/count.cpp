// SPDX-License-Identifier: Apache-2.0
#include "export/count.hpp"

#include "export/chrome.hpp"

namespace opscope::exporter {

analyse::verification verify(const capture::capture& source) {
  analyse::census_stream counted;
  (void)write_chrome(source, counted);
  return analyse::verify(source, counted.census());
}

}  // namespace opscope::exporter
