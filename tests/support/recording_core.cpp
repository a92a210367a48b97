// SPDX-License-Identifier: Apache-2.0
//
// A stand-in for libopscope-core.so: it writes every event that a layer delivers as one JSON line
// to the session's output, so that a layer's tests see exactly what the layer said. Slow, and with
// a lock; correct for any number of threads.
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <ctime>
#include <fstream>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "collect/runtime.h"

namespace {

using nlohmann::json;

struct state {
  std::mutex mutex;
  std::ofstream out;
  std::string path;
  std::map<std::string, std::uint32_t, std::less<>> handles;
  std::vector<std::string> names{""};
  std::vector<const opscope_layer*> layers;
  opscope_session_options options{};
  bool running = false;
  bool paused = false;
};

state& core() {
  static auto* only = new state;
  return *only;
}

std::uint32_t recording = 0;

std::uint32_t os_id() { return static_cast<std::uint32_t>(::syscall(SYS_gettid)); }

opscope_thread* thread_state() {
  static thread_local opscope_thread mine{0, 0, 0, 0, os_id()};
  return &mine;
}

std::uint64_t now() {
  timespec time{};
  clock_gettime(CLOCK_REALTIME, &time);
  return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000U +
         static_cast<std::uint64_t>(time.tv_nsec);
}

std::uint64_t next_id() {
  static std::atomic<std::uint64_t> last{0};
  return ++last;
}

std::string text(const opscope_name& name) {
  if (name.handle != 0) return core().names.at(name.handle);
  return name.data == nullptr ? std::string{} : std::string{name.data, name.size};
}

void write(const json& line) {
  if (core().out.is_open()) {
    core().out << line.dump(-1, ' ', false, json::error_handler_t::replace) << '\n';
  }
}

std::uint32_t or_calling(std::uint32_t thread) { return thread ? thread : os_id(); }

void on_frame(const opscope_frame_event* event) {
  const std::scoped_lock lock{core().mutex};
  write({{"kind", "frame"},
         {"start", event->start_ns},
         {"end", event->end_ns},
         {"id", event->id},
         {"parent", event->parent},
         {"name", text(event->name)},
         {"file", text(event->file)},
         {"line", event->line},
         {"flags", event->flags},
         {"thread", or_calling(event->thread)}});
}

void on_op(const opscope_op_event* event) {
  const std::scoped_lock lock{core().mutex};
  json arguments;
  for (std::uint32_t index = 0; event->arguments != nullptr && index < event->argument_count;
       ++index) {
    const opscope_argument& item = event->arguments[index];
    json sizes;
    if (item.sizes != nullptr)
      sizes = std::vector<std::int64_t>(item.sizes, item.sizes + item.rank);
    arguments.push_back({{"sizes", sizes}, {"item", item.list_item}, {"type", item.type}});
  }
  write({{"kind", "op"},
         {"start", event->start_ns},
         {"end", event->end_ns},
         {"id", event->id},
         {"frame", event->python_frame},
         {"sequence", event->sequence},
         {"forward_thread", event->forward_thread},
         {"logical_thread", event->logical_thread},
         {"input_bytes", event->input_bytes},
         {"output_bytes", event->output_bytes},
         {"name", text(event->name)},
         {"arguments", arguments},
         {"flags", event->flags},
         {"thread", or_calling(event->thread)}});
}

void on_range(const opscope_range_event* event) {
  const std::scoped_lock lock{core().mutex};
  write({{"kind", "range"},
         {"start", event->start_ns},
         {"end", event->end_ns},
         {"id", event->id},
         {"payload", event->payload},
         {"payload_type", event->payload_type},
         {"name", text(event->name)},
         {"domain", text(event->domain)},
         {"category", text(event->category)},
         {"color", event->color},
         {"flags", event->flags},
         {"thread", or_calling(event->thread)},
         {"end_thread", or_calling(event->end_thread)}});
}

void on_call_mark(std::uint64_t start_ns, std::uint64_t end_ns, std::uint32_t cell,
                  std::uint32_t contender, std::uint32_t ordinal) {
  const std::scoped_lock lock{core().mutex};
  write({{"kind", "call_mark"},
         {"start", start_ns},
         {"end", end_ns},
         {"cell", cell},
         {"contender", contender},
         {"ordinal", ordinal}});
}

void on_sample(std::uint32_t metric, std::uint32_t cell, std::uint32_t contender,
               std::uint32_t ordinal, std::int64_t value) {
  const std::scoped_lock lock{core().mutex};
  write({{"kind", "sample"},
         {"metric", metric},
         {"cell", cell},
         {"contender", contender},
         {"ordinal", ordinal},
         {"value", value}});
}

std::atomic<int> open_counters{0};

int counter_begin(opscope_name name, std::uint32_t cell, std::uint32_t contender) {
  const std::scoped_lock lock{core().mutex};
  if (core().options.dram == OPSCOPE_DRAM_OFF || open_counters != 0) return 0;
  open_counters = 1;
  write(
      {{"kind", "counter_begin"}, {"name", text(name)}, {"cell", cell}, {"contender", contender}});
  return 1;
}

void counter_end() {
  const std::scoped_lock lock{core().mutex};
  open_counters = 0;
  write({{"kind", "counter_end"}});
}

std::uint32_t intern(const char* data, std::size_t size) {
  const std::scoped_lock lock{core().mutex};
  const std::string_view name{data, size};
  if (const auto known = core().handles.find(name); known != core().handles.end())
    return known->second;
  const auto handle = static_cast<std::uint32_t>(core().names.size());
  core().names.emplace_back(name);
  core().handles.emplace(name, handle);
  return handle;
}

void account(std::uint32_t outcome, const char* record, std::uint64_t count) {
  const std::scoped_lock lock{core().mutex};
  write({{"kind", "account"}, {"outcome", outcome}, {"record", record}, {"count", count}});
}

void document(const char* name, const char* text_json) {
  const std::scoped_lock lock{core().mutex};
  write({{"kind", "document"}, {"name", name}, {"json", text_json}});
}

void warn(const char* line) {
  const std::scoped_lock lock{core().mutex};
  write({{"kind", "warning"}, {"line", line}});
}

void start_layers() {
  for (const opscope_layer* layer : core().layers) {
    char error[512] = "";
    if (layer->start(&core().options, error, sizeof error) != 0) {
      warn((std::string{layer->name} + ": " + error).c_str());
    }
  }
  recording = 1;
}

void stop_layers() {
  for (const opscope_layer* layer : core().layers) layer->stop();
  recording = 0;
}

void register_layer(const opscope_layer* layer) {
  core().layers.push_back(layer);
  if (!core().running || core().paused) return;
  char error[512] = "";
  if (layer->start(&core().options, error, sizeof error) != 0) warn(error);
}

int session_start(const opscope_session_options* options, char* error, std::size_t error_size) {
  state& self = core();
  if (self.running) {
    std::snprintf(error, error_size, "a session is on already (stop it first)");
    return 1;
  }
  self.out.open(options->output, std::ios::trunc);
  self.path = options->output;
  self.options = *options;
  self.running = true;
  start_layers();
  return 0;
}

void session_pause() {
  stop_layers();
  core().paused = true;
}

void session_resume() {
  core().paused = false;
  start_layers();
}

int session_stop(char*, std::size_t) {
  if (!core().paused) stop_layers();
  core().paused = false;
  core().out.close();
  core().running = false;
  return 0;
}

const char* session_path() { return core().path.c_str(); }
const char* machine_json() { return "{\"stand_in\": true}"; }
int cupti_touched() { return 0; }
int detach(char* /*error*/, std::size_t /*size*/) { return 0; }
void flush() { core().out.flush(); }

void name_thread(std::uint32_t thread, const char* name) {
  const std::scoped_lock lock{core().mutex};
  write({{"kind", "thread_name"}, {"thread", thread}, {"name", name}});
}

}  // namespace

extern "C" const opscope_runtime* opscope_runtime_get(std::uint32_t version) {
  static const opscope_runtime table{OPSCOPE_RUNTIME_VERSION,
                                     sizeof(opscope_runtime),
                                     &recording,
                                     thread_state,
                                     now,
                                     next_id,
                                     on_frame,
                                     on_op,
                                     on_range,
                                     on_call_mark,
                                     on_sample,
                                     counter_begin,
                                     counter_end,
                                     intern,
                                     account,
                                     document,
                                     warn,
                                     register_layer,
                                     session_start,
                                     session_stop,
                                     session_pause,
                                     session_resume,
                                     flush,
                                     session_path,
                                     machine_json,
                                     cupti_touched,
                                     name_thread,
                                     detach};
  return version == OPSCOPE_RUNTIME_VERSION ? &table : nullptr;
}
