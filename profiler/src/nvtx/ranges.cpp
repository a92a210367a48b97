// SPDX-License-Identifier: Apache-2.0
//
// A recording period (from a session's start or resume to its pause or stop) has a number, the
// epoch. A range whose epoch is not the current one began before it: its start is clamped to the
// period's. A stop writes what is open and leaves it open, so that the next period has its own
// part.
#include "nvtx/ranges.hpp"

#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <bit>
#include <cstring>

#include "collect/runtime_client.hpp"
#include "collect/span_stack.hpp"
#include "collect/span_table.hpp"
#include "collect/thread_registry.hpp"
#include "model/ledger.hpp"
#include "model/records.hpp"

namespace opscope::nvtx {
namespace {

constexpr const char* ledger_name = "user_annotation";
// As deep as the frames that are followed. A thread's stack is reserved at its first range; its
// memory is the machine's until it is that deep.
constexpr std::uint32_t stack_capacity = 4096;

struct recording_period {
  std::atomic<std::uint32_t> epoch{0};  ///< of the period that is on; 0: none
  std::atomic<std::uint64_t> start_ns{0};
  std::uint32_t last_epoch = 0;  ///< written by starts only
};
recording_period period;
std::atomic<std::uint64_t> received_marks{0};

struct thread_ranges {
  void adopt() noexcept {
    client::runtime()->thread();  // made before this state, so that it outlives it
    os_id = static_cast<std::uint32_t>(::syscall(SYS_gettid));
    while (open.depth() > 0) open.remove(open.depth() - 1);  // a former owner's
    overflow = 0;
  }
  void leave() const noexcept;
  client::span_stack<open_range, stack_capacity> open;
  std::uint32_t os_id = 0;
  std::uint32_t overflow = 0;  ///< pushes that found the stack full and were not popped yet
};
using threads = client::thread_registry<thread_ranges>;

void account(outcome what) noexcept {
  client::runtime()->account(static_cast<std::uint32_t>(what), ledger_name, 1);
}

std::uint32_t calling_thread() noexcept {
  const thread_ranges* mine = threads::current();
  return mine ? mine->os_id : 0;
}

void set_text(open_range& range, const char* text) noexcept {
  range.name_size = copy_text(text, range.name, open_range::name_capacity);
}
void set_text(open_range& range, const wchar_t* text) noexcept {
  range.name_size = copy_text(text, range.name, open_range::name_capacity);
}

void set_payload(open_range& range, const nvtxEventAttributes_t& event) noexcept {
  using kind = opscope::range::payload_kind;
  const auto set = [&range](kind type, std::uint64_t bits) {
    range.payload_type = static_cast<std::uint32_t>(type);
    range.payload = bits;
  };
  switch (event.payloadType) {
    case NVTX_PAYLOAD_TYPE_UNSIGNED_INT64:
      return set(kind::unsigned_integer, event.payload.ullValue);
    case NVTX_PAYLOAD_TYPE_UNSIGNED_INT32:
      return set(kind::unsigned_integer, event.payload.uiValue);
    case NVTX_PAYLOAD_TYPE_INT64:
      return set(kind::signed_integer, static_cast<std::uint64_t>(event.payload.llValue));
    case NVTX_PAYLOAD_TYPE_INT32:
      return set(kind::signed_integer,
                 static_cast<std::uint64_t>(static_cast<std::int64_t>(event.payload.iValue)));
    case NVTX_PAYLOAD_TYPE_DOUBLE:
      return set(kind::floating, std::bit_cast<std::uint64_t>(event.payload.dValue));
    case NVTX_PAYLOAD_TYPE_FLOAT:
      return set(kind::floating,
                 std::bit_cast<std::uint64_t>(static_cast<double>(event.payload.fValue)));
    default:
      return;
  }
}

void set_text(open_range& range, const nvtxEventAttributes_t* event) noexcept {
  if (event == nullptr) return;
  switch (event->messageType) {
    case NVTX_MESSAGE_TYPE_ASCII:
      set_text(range, event->message.ascii);
      break;
    case NVTX_MESSAGE_TYPE_UNICODE:
      set_text(range, event->message.unicode);
      break;
    case NVTX_MESSAGE_TYPE_REGISTERED:
      range.name_handle = string_name(event->message.registered);
      break;
    default:
      break;
  }
  range.category = event->category;
  if (event->colorType == NVTX_COLOR_ARGB) range.color = event->color;
  set_payload(range, *event);
}

/// Notes the begin: the clock is read last, and only while recording.
void stamp(open_range& range) noexcept {
  range.epoch = period.epoch.load(std::memory_order_acquire);
  if (range.epoch == 0) return;
  const opscope_runtime& runtime = *client::runtime();
  if (opscope_thread* thread = runtime.thread()) client::touch(*thread);
  range.id = runtime.next_id();
  range.start_ns = runtime.now();
}

/// Writes the row of a range that ends at `end_ns` within `epoch`.
void write(const open_range& range, std::uint32_t epoch, std::uint64_t end_ns, std::uint32_t flags,
           std::uint32_t end_thread) noexcept {
  const opscope_runtime& runtime = *client::runtime();
  opscope_range_event event{};
  event.start_ns = range.start_ns;
  event.id = range.id;
  event.flags = flags;
  if (range.epoch != epoch) {
    event.start_ns = period.start_ns.load(std::memory_order_relaxed);
    event.id = runtime.next_id();
    event.flags |= span_flag::open_at_start;
  }
  if ((event.flags & (span_flag::open_at_start | span_flag::open_at_end)) != 0)
    account(outcome::clamped);
  event.end_ns = end_ns < event.start_ns ? event.start_ns : end_ns;
  event.payload = range.payload;
  event.name = {range.name, range.name_size, range.name_handle};
  event.domain = {nullptr, 0, range.where->name()};
  event.category = {nullptr, 0, range.category ? range.where->category(range.category) : 0};
  event.color = range.color;
  event.payload_type = range.payload_type;
  event.thread = range.thread;
  event.end_thread = end_thread;
  runtime.range(&event);
}

void write_open(const thread_ranges& thread, std::uint32_t epoch, std::uint64_t end_ns) noexcept {
  open_range copy;
  for (std::uint32_t index = 0; thread.open.copy(index, copy); ++index) {
    write(copy, epoch, end_ns, span_flag::open_at_end, copy.thread);
  }
}

/// A thread ends: nobody will pop what it has open.
void thread_ranges::leave() const noexcept {
  const std::uint32_t epoch = period.epoch.load(std::memory_order_acquire);
  if (epoch != 0 && open.depth() > 0) write_open(*this, epoch, client::runtime()->now());
}

client::span_table<open_range, 1024> process_ranges;
std::atomic<nvtxRangeId_t> last_range_id{0};

int start_layer(const opscope_session_options* options, char*, std::size_t) {
  if (options->no_nvtx != 0) return 0;
  period.start_ns.store(client::runtime()->now(), std::memory_order_relaxed);
  period.epoch.store(++period.last_epoch, std::memory_order_release);
  return 0;
}

void stop_layer() {
  const threads::hold held;
  const std::uint32_t epoch = period.epoch.exchange(0, std::memory_order_acq_rel);
  if (epoch == 0) return;
  const std::uint64_t end_ns = client::runtime()->now();
  threads::for_each(held, [&](const thread_ranges& thread) { write_open(thread, epoch, end_ns); });
  process_ranges.for_each([&](const open_range& range) {
    write(range, epoch, end_ns, opscope::range::process_wide | span_flag::open_at_end,
          range.thread);
  });
}

}  // namespace

template <typename Text>
void describe(open_range& range, nvtxDomainHandle_t where, const Text* text) noexcept {
  std::memset(static_cast<void*>(&range), 0, offsetof(open_range, name));
  range.where = &domain_of(where);
  range.thread = calling_thread();
  set_text(range, text);
  stamp(range);
}

template <typename Text>
int push(nvtxDomainHandle_t where, const Text* text) noexcept {
  thread_ranges* mine = threads::current();
  if (mine == nullptr) return -1;
  const domain* here = &domain_of(where);
  std::uint32_t level = 0;
  for (std::uint32_t index = mine->open.depth(); index-- > 0;) {
    if (mine->open[index].where != here) continue;
    level = mine->open[index].level + 1;
    break;
  }
  if (!mine->open.push([&](open_range& range) {
        describe(range, where, text);
        range.level = level;
      })) {
    ++mine->overflow;
    if (period.epoch.load(std::memory_order_relaxed) != 0) account(outcome::dropped);
    return -1;
  }
  return static_cast<int>(level);
}

int pop(nvtxDomainHandle_t where) noexcept {
  const std::uint32_t epoch = period.epoch.load(std::memory_order_acquire);
  const std::uint64_t end_ns = epoch != 0 ? client::runtime()->now() : 0;
  thread_ranges* mine = threads::current();
  if (mine == nullptr) return -1;
  if (mine->overflow > 0) {
    --mine->overflow;
    return -1;
  }
  const domain* here = &domain_of(where);
  for (std::uint32_t index = mine->open.depth(); index-- > 0;) {
    if (mine->open[index].where != here) continue;
    const open_range ended = mine->open[index];
    mine->open.remove(index);
    if (epoch != 0 && period.epoch.load(std::memory_order_acquire) == epoch) {
      write(ended, epoch, end_ns, 0, ended.thread);
    }
    return static_cast<int>(ended.level);
  }
  return -1;
}

template <typename Text>
nvtxRangeId_t start(nvtxDomainHandle_t where, const Text* text) noexcept {
  const nvtxRangeId_t id = last_range_id.fetch_add(1, std::memory_order_relaxed) + 1;
  if (process_ranges.open(id, [&](open_range& range) { describe(range, where, text); })) return id;
  if (period.epoch.load(std::memory_order_relaxed) != 0) account(outcome::dropped);
  return 0;
}

void end(nvtxRangeId_t id) noexcept {
  const std::uint32_t epoch = period.epoch.load(std::memory_order_acquire);
  const std::uint64_t end_ns = epoch != 0 ? client::runtime()->now() : 0;
  process_ranges.close(id, [&](const open_range& range) {
    if (epoch != 0 && period.epoch.load(std::memory_order_acquire) == epoch) {
      write(range, epoch, end_ns, opscope::range::process_wide, calling_thread());
    }
  });
}

template <typename Text>
void mark(nvtxDomainHandle_t where, const Text* text) noexcept {
  received_marks.fetch_add(1, std::memory_order_relaxed);
  const std::uint32_t epoch = period.epoch.load(std::memory_order_acquire);
  if (epoch == 0) return;
  open_range instant;
  describe(instant, where, text);
  if (instant.epoch == epoch)
    write(instant, epoch, instant.start_ns, opscope::range::mark, instant.thread);
}

std::uint64_t marks_received() noexcept { return received_marks.load(std::memory_order_relaxed); }

template int push(nvtxDomainHandle_t, const char*) noexcept;
template int push(nvtxDomainHandle_t, const wchar_t*) noexcept;
template int push(nvtxDomainHandle_t, const nvtxEventAttributes_t*) noexcept;
template nvtxRangeId_t start(nvtxDomainHandle_t, const char*) noexcept;
template nvtxRangeId_t start(nvtxDomainHandle_t, const wchar_t*) noexcept;
template nvtxRangeId_t start(nvtxDomainHandle_t, const nvtxEventAttributes_t*) noexcept;
template void mark(nvtxDomainHandle_t, const char*) noexcept;
template void mark(nvtxDomainHandle_t, const wchar_t*) noexcept;
template void mark(nvtxDomainHandle_t, const nvtxEventAttributes_t*) noexcept;

const opscope_layer& layer() noexcept {
  static constexpr opscope_layer instance{"nvtx", start_layer, stop_layer};
  return instance;
}

}  // namespace opscope::nvtx
