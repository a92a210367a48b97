// SPDX-License-Identifier: Apache-2.0
#include "collect/session_options.hpp"

#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "model/version.hpp"
#include "opscope/error.hpp"

namespace opscope::collect {
namespace {

constexpr std::size_t default_memory = 256U << 20;

std::string program() {
  std::ifstream file{"/proc/self/cmdline", std::ios::binary};
  std::string line{std::istreambuf_iterator<char>{file}, {}};
  line.resize(std::min<std::size_t>(line.size(), 4096));
  std::ranges::replace(line, '\0', ' ');
  while (!line.empty() && line.back() == ' ') line.pop_back();
  return line;
}

nlohmann::ordered_json machine() {
  utsname system{};
  uname(&system);
  return {{"system", system.sysname},
          {"release", system.release},
          {"architecture", system.machine},
          {"cpus", std::thread::hardware_concurrency()}};
}

nlohmann::ordered_json describe(const opscope_session_options& options, std::size_t memory) {
  constexpr std::array python{"off", "entry", "calls"};
  constexpr std::array dram{"off", "ops", "ranges"};
  return {{"python", python.at(options.python)},
          {"shapes", options.shapes != 0},
          {"dram", dram.at(options.dram)},
          {"counter_capacity", options.counter_capacity},
          {"memory_bytes", memory},
          {"wait_when_full", options.wait_when_full != 0},
          {"strict", options.strict != 0},
          {"gpu", options.no_gpu == 0},
          {"api", options.no_api == 0},
          {"ops", options.no_ops == 0},
          {"nvtx", options.no_nvtx == 0}};
}

}  // namespace

session_options::session_options(const opscope_session_options& given) {
  if (given.size < offsetof(opscope_session_options, force)) {
    throw error("cannot start the session: its options have no size (set size to sizeof)");
  }
  std::memcpy(&values_, &given, std::min<std::size_t>(given.size, sizeof values_));
  values_.size = sizeof values_;
  if (values_.output == nullptr || *values_.output == '\0') {
    throw error("cannot start the session: no output was named (give the path of the capture)");
  }
  if (values_.python > OPSCOPE_PYTHON_CALLS || values_.dram > OPSCOPE_DRAM_RANGES) {
    throw error(
        "cannot start the session: an option has a value that this version does not know "
        "(use libraries of one version)");
  }
  output_ = values_.output;
  if (values_.metadata_json != nullptr) metadata_ = values_.metadata_json;
  if (values_.counter_capacity == 0) values_.counter_capacity = 256;
  values_.output = output_.c_str();
  values_.metadata_json = metadata_.empty() ? nullptr : metadata_.c_str();
}

std::size_t session_options::memory_bytes() const noexcept {
  return values_.memory_bytes == 0 ? default_memory
                                   : static_cast<std::size_t>(values_.memory_bytes);
}

bool session_options::wants(std::string_view layer) const noexcept {
  if (layer == "ops") return values_.no_ops == 0;
  if (layer == "nvtx") return values_.no_nvtx == 0;
  if (layer == "python") return values_.python != OPSCOPE_PYTHON_OFF;
  return true;
}

std::string session_header(const session_options& options, std::uint64_t start_ns,
                           const std::string& own_cost_json, bool cupti_touched) {
  nlohmann::ordered_json header;
  header["schema"] = "opscope.session/1";
  header["version"] = version;
  header["pid"] = getpid();
  std::array<char, 256> host{};
  gethostname(host.data(), host.size() - 1);
  header["host"] = host.data();
  header["program"] = program();
  header["start_ns"] = std::to_string(start_ns);
  header["clock"] = "CLOCK_REALTIME";
  header["options"] = describe(options.get(), options.memory_bytes());
  header["methods"] = {
      {"host_spans", "CLOCK_REALTIME read at both ends"},
      {"kernel_duration", "cupti-record"},
      {"dram_bytes", options.get().dram == OPSCOPE_DRAM_OFF ? "not measured: dram is off"
                                                            : "counter:user-range"}};
  header["machine"] = machine();
  header["cupti_touched_before"] = cupti_touched;
  header["own_cost"] = nlohmann::ordered_json::parse(own_cost_json, nullptr, false);
  const auto metadata = nlohmann::ordered_json::parse(options.metadata(), nullptr, false);
  if (metadata.is_object()) {
    for (const auto& [name, value] : metadata.items()) {
      if (!header.contains(name)) header[name] = value;
    }
  }
  return header.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace opscope::collect
