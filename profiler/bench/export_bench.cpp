// SPDX-License-Identifier: Apache-2.0
//
// Events per second and bytes per event of the Chrome export, from a synthetic capture of about a
// million events.
#include <benchmark/benchmark.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "capture/reader.hpp"
#include "export/chrome.hpp"
#include "export/gzip_stream.hpp"
#include "synthetic_capture.hpp"

namespace {

constexpr std::uint32_t rounds = 11'000;  // 92 events each

/// The capture, made once and removed at the end.
class fixture {
 public:
  fixture()
      : path_{std::filesystem::temp_directory_path() /
              ("opscope-bench-" + std::to_string(getpid()) + ".opscope")} {
    opscope::support::write_synthetic_capture(path_, rounds);
  }
  ~fixture() {
    std::error_code ignored;
    std::filesystem::remove(path_, ignored);
  }
  fixture(const fixture&) = delete;
  fixture& operator=(const fixture&) = delete;

  [[nodiscard]] opscope::capture::capture open() const {
    return opscope::capture::capture::open(path_).value();
  }

 private:
  std::filesystem::path path_;
};

const fixture& shared_fixture() {
  static const fixture made;
  return made;
}

void report(benchmark::State& state, const opscope::exporter::chrome_report& written) {
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(written.events));
  state.counters["events"] = static_cast<double>(written.events);
  state.counters["bytes_per_event"] =
      static_cast<double>(written.bytes) / static_cast<double>(written.events);
}

void export_json(benchmark::State& state) {
  const auto source = shared_fixture().open();
  opscope::exporter::chrome_report written;
  for (auto _ : state) {
    std::ofstream nowhere{"/dev/null"};
    written = opscope::exporter::write_chrome(source, nowhere);
  }
  report(state, written);
}
BENCHMARK(export_json)->Unit(benchmark::kMillisecond);

void export_gzip(benchmark::State& state) {
  const auto source = shared_fixture().open();
  opscope::exporter::chrome_report written;
  for (auto _ : state) {
    std::ofstream nowhere{"/dev/null"};
    opscope::exporter::gzip_stream gzip{nowhere};
    written = opscope::exporter::write_chrome(source, gzip);
    gzip.finish();
  }
  report(state, written);
}
BENCHMARK(export_gzip)->Unit(benchmark::kMillisecond);

}  // namespace

BENCHMARK_MAIN();
