// SPDX-License-Identifier: Apache-2.0
//
// The core's only exported symbol. Two copies of the core may be loaded into one process (a wheel's
// and an installed one): the first leaves its table's address in the environment, the second defers
// to it. The entry is bound to this very program image by pid and AT_RANDOM, so that neither a
// forked or started child nor a program that replaced this one by exec takes it for its own.
#include <sys/auxv.h>
#include <unistd.h>

#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string>

#include "collect/factories.hpp"

namespace opscope::collect {
namespace {

constexpr const char* variable = "OPSCOPE_CORE";

std::uint64_t image_id() noexcept {
  std::uint64_t id = 0;
  const auto* random = reinterpret_cast<const void*>(getauxval(AT_RANDOM));  // NOLINT
  if (random != nullptr) std::memcpy(&id, random, sizeof id);
  return id;
}

const opscope_runtime* first_core() noexcept {
  const char* entry = std::getenv(variable);
  if (entry == nullptr) return nullptr;
  long pid = 0;
  std::uint64_t image = 0;
  std::uint64_t address = 0;
  // Only a core writes it, by its own snprintf; an entry of another process is not taken.
  // NOLINTNEXTLINE(bugprone-unchecked-string-to-number-conversion)
  if (std::sscanf(entry, "%ld:%" SCNx64 ":%" SCNx64, &pid, &image, &address) != 3) return nullptr;
  if (pid != getpid() || image != image_id() || address == 0) return nullptr;
  return reinterpret_cast<const opscope_runtime*>(address);  // NOLINT(performance-no-int-to-ptr)
}

const opscope_runtime* find_or_install() noexcept {
  if (const opscope_runtime* first = first_core()) return first;
  const opscope_runtime* own =
      install_runtime({make_activity_source, make_counter_source, describe_machine,
                       activity_touched, detach_activity});
  char entry[96];
  std::snprintf(entry, sizeof entry, "%ld:%" PRIx64 ":%" PRIxPTR, static_cast<long>(getpid()),
                image_id(), reinterpret_cast<std::uintptr_t>(own));
  if (own != nullptr) setenv(variable, entry, 1);
  return own;
}

}  // namespace
}  // namespace opscope::collect

extern "C" const opscope_runtime* opscope_runtime_get(uint32_t version) {
  static const opscope_runtime* const found = opscope::collect::find_or_install();
  return found != nullptr && found->version >= version && version != 0 ? found : nullptr;
}
