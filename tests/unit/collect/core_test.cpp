// SPDX-License-Identifier: Apache-2.0
//
// libopscope-core.so as other libraries meet it: by dlopen.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "collect/runtime.h"
#include "support/temporary_folder.hpp"

namespace opscope::collect {
namespace {

using get_function = decltype(&opscope_runtime_get);

void* load(const std::string& path) { return dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL); }

const opscope_runtime* runtime_of(const std::string& path, std::uint32_t version = 1) {
  void* library = load(path);
  if (library == nullptr) return nullptr;
  const auto get = reinterpret_cast<get_function>(dlsym(library, "opscope_runtime_get"));
  return get == nullptr ? nullptr : get(version);
}

TEST(core, a_second_copy_defers_to_the_first) {
  const test::temporary_folder folder;
  const std::string copy = folder / "libopscope-core.so";
  std::filesystem::copy_file(OPSCOPE_TEST_CORE, copy);
  const opscope_runtime* first = runtime_of(OPSCOPE_TEST_CORE);
  ASSERT_NE(first, nullptr) << dlerror();
  EXPECT_EQ(runtime_of(copy), first);
  EXPECT_NE(load(copy), load(OPSCOPE_TEST_CORE)) << "two libraries, one runtime";
}

TEST(core, an_entry_of_another_process_is_not_believed) {
  const test::temporary_folder folder;
  ASSERT_NE(runtime_of(OPSCOPE_TEST_CORE), nullptr);
  const std::string entry = std::getenv("OPSCOPE_CORE");
  int copies = 0;
  for (const std::string& stale : {std::string{"1:0:1234"}, std::string{"nonsense"}, std::string{},
                                   std::to_string(getpid()) + ":0:1234"}) {
    setenv("OPSCOPE_CORE", stale.c_str(), 1);
    const std::string another = folder / ("core" + std::to_string(++copies) + ".so");
    std::filesystem::copy_file(OPSCOPE_TEST_CORE, another);
    const opscope_runtime* own = runtime_of(another);
    ASSERT_NE(own, nullptr) << stale;
    EXPECT_EQ(own->version, OPSCOPE_RUNTIME_VERSION);
  }
  setenv("OPSCOPE_CORE", entry.c_str(), 1);
}

TEST(core, serves_its_own_version_only) {
  EXPECT_NE(runtime_of(OPSCOPE_TEST_CORE, OPSCOPE_RUNTIME_VERSION), nullptr);
  EXPECT_EQ(runtime_of(OPSCOPE_TEST_CORE, OPSCOPE_RUNTIME_VERSION + 1), nullptr);
  EXPECT_EQ(runtime_of(OPSCOPE_TEST_CORE, 0), nullptr);
}

TEST(core, exports_nothing_else) {
  void* library = load(OPSCOPE_TEST_CORE);
  ASSERT_NE(library, nullptr);
  for (const char* inside :
       {"ZSTD_compress", "_ZN7opscope7collect15install_runtimeERKNS0_9factoriesE",
        "cuptiSubscribe"}) {
    EXPECT_EQ(dlsym(library, inside), nullptr) << inside;
  }
}

TEST(core, describes_the_machine_for_doctor) {
  const opscope_runtime* runtime = runtime_of(OPSCOPE_TEST_CORE);
  ASSERT_NE(runtime, nullptr);
  EXPECT_EQ(runtime->machine_json()[0], '{');
}

}  // namespace
}  // namespace opscope::collect
