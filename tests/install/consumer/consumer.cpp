// SPDX-License-Identifier: Apache-2.0
#include <cstring>
#include <opscope/error.hpp>
#include <opscope/profile.hpp>

// Linked and working: a missing capture is an error of one line that names it.
int main() {
  try {
    opscope::export_trace("missing.opscope", "missing.json");
  } catch (const opscope::error& failure) {
    const bool named = std::strstr(failure.what(), "missing.opscope") != nullptr;
    return named && std::strchr(failure.what(), '\n') == nullptr ? 0 : 2;
  }
  return 1;
}
