// SPDX-License-Identifier: Apache-2.0
//
// make_fixture_capture OUT [ROUNDS]: writes a synthetic capture, for tests that start programs.
#include <cstdlib>
#include <exception>
#include <iostream>
#include <string>

#include "synthetic_capture.hpp"

int main(int argc, char** argv) try {
  if (argc < 2) {
    std::cerr << "usage: make_fixture_capture OUT [ROUNDS]\n";
    return 2;
  }
  const auto rounds = argc > 2 ? static_cast<std::uint32_t>(std::stoul(argv[2])) : 3U;
  const auto made = opscope::support::write_synthetic_capture(argv[1], rounds);
  std::cout << R"({"frames":)" << made.frames << R"(,"ops":)" << made.ops << R"(,"launches":)"
            << made.launches << R"(,"activities":)" << made.activities << R"(,"called_ops":)"
            << made.called_ops << "}\n";
  return 0;
} catch (const std::exception& failure) {
  std::cerr << "make_fixture_capture: " << failure.what() << '\n';
  return 3;
}
