// SPDX-License-Identifier: Apache-2.0
#include "capture/renaming.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <string>

#include "support/temporary_folder.hpp"

namespace {

int refused_renames = 0;  ///< error number that the file system of a test gives
int refused_links = 0;

}  // namespace

// These stand before the C library's: a file system that lacks something is one that says so.
// Under another name here, so that it is no second definition of the C library's declaration.
extern "C" int faked_renameat2(int from_folder, const char* from, int to_folder, const char* to,
                               unsigned flags) noexcept __asm__("renameat2");
extern "C" int faked_renameat2(int from_folder, const char* from, int to_folder, const char* to,
                               unsigned flags) noexcept {
  if (refused_renames != 0) {
    errno = refused_renames;
    return -1;
  }
  return static_cast<int>(::syscall(SYS_renameat2, from_folder, from, to_folder, to, flags));
}

extern "C" int link(const char* from, const char* to) noexcept {
  if (refused_links != 0) {
    errno = refused_links;
    return -1;
  }
  return static_cast<int>(::syscall(SYS_linkat, AT_FDCWD, from, AT_FDCWD, to, 0));
}

namespace opscope::capture {
namespace {

struct file_system {
  const char* name;
  int renames;
  int links;
};

class renaming : public testing::TestWithParam<file_system> {
 protected:
  void SetUp() override {
    refused_renames = GetParam().renames;
    refused_links = GetParam().links;
    std::ofstream{from} << "new";
  }
  void TearDown() override { refused_renames = refused_links = 0; }

  [[nodiscard]] static std::string text_of(const std::filesystem::path& path) {
    std::string text;
    std::ifstream{path} >> text;
    return text;
  }

  test::temporary_folder folder;
  std::filesystem::path from = folder / "from";
  std::filesystem::path to = folder / "to";
};

TEST_P(renaming, gives_a_free_name) {
  EXPECT_EQ(rename_new(from.c_str(), to.c_str()), 0);
  EXPECT_EQ(text_of(to), "new");
  EXPECT_FALSE(std::filesystem::exists(from));
}

TEST_P(renaming, replaces_no_file) {
  std::ofstream{to} << "anothers";
  EXPECT_EQ(rename_new(from.c_str(), to.c_str()), EEXIST);
  EXPECT_EQ(text_of(to), "anothers");
  EXPECT_EQ(text_of(from), "new");
}

TEST_P(renaming, replaces_no_link_that_leads_nowhere) {
  std::filesystem::create_symlink("nowhere", to);
  EXPECT_EQ(rename_new(from.c_str(), to.c_str()), EEXIST);
  EXPECT_TRUE(std::filesystem::is_symlink(to));
}

TEST_P(renaming, replaces_when_asked_to) {
  std::ofstream{to} << "anothers";
  EXPECT_EQ(rename_over(from.c_str(), to.c_str()), 0);
  EXPECT_EQ(text_of(to), "new");
}

INSTANTIATE_TEST_SUITE_P(on, renaming,
                         testing::Values(file_system{"any", 0, 0},
                                         file_system{"without_exclusive_renames", EINVAL, 0},
                                         file_system{"without_links_too", EINVAL, EPERM}),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace opscope::capture
