// SPDX-License-Identifier: Apache-2.0
#include "capture/writer.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <functional>

#include "capture/reader.hpp"
#include "opscope/error.hpp"
#include "support/rows.hpp"
#include "support/temporary_folder.hpp"

namespace opscope::capture {
namespace {

using test::make_row;

std::string message_of(const std::function<void()>& body) {
  try {
    body();
  } catch (const error& failed) {
    return failed.what();
  }
  return "nothing was thrown";
}

TEST(writer, never_shows_a_partial_file_under_the_final_name) {
  const test::temporary_folder folder;
  writer to{folder / "a.opscope", false, "{}"};
  EXPECT_FALSE(std::filesystem::exists(folder / "a.opscope"));
  EXPECT_TRUE(std::filesystem::exists(folder / "a.opscope.partial"));
  to.close(timestamp{1}, {});
  EXPECT_TRUE(std::filesystem::exists(folder / "a.opscope"));
  EXPECT_FALSE(std::filesystem::exists(folder / "a.opscope.partial"));
}

TEST(writer, refuses_an_existing_output_unless_forced) {
  const test::temporary_folder folder;
  std::ofstream{folder / "a.opscope"} << "precious";
  const auto message = message_of([&] { writer{folder / "a.opscope", false, "{}"}; });
  EXPECT_NE(message.find("exists (remove it, or set force to true)"), std::string::npos) << message;

  writer forced{folder / "a.opscope", true, "{}"};
  EXPECT_EQ(std::filesystem::file_size(folder / "a.opscope"), 8U) << "replaced before it is whole";
  forced.close(timestamp{1}, {});
  EXPECT_TRUE(capture::open(folder / "a.opscope").ok());
}

TEST(writer, leaves_a_file_alone_that_got_the_number_of_its_closed_descriptor) {
  const test::temporary_folder folder;
  const auto number = [&](const char* name) {
    for (int descriptor = 3;; ++descriptor) {
      const auto link = std::filesystem::path{"/proc/self/fd"} / std::to_string(descriptor);
      std::error_code absent;
      if (std::filesystem::read_symlink(link, absent).filename() == name) return descriptor;
    }
  };
  int users = -1;
  {
    writer to{folder / "a.opscope", false, "{}"};
    users = number("a.opscope.partial");
    const int other = ::open((folder / "user.txt").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    ASSERT_EQ(::dup2(other, users), users);
    ::close(other);
    const auto message = message_of([&] { to.document("a", "{}"); });
    EXPECT_NE(message.find("the program closed the file"), std::string::npos) << message;
    EXPECT_FALSE(to.partial().empty()) << "what was written before stays, and is told";
  }
  EXPECT_EQ(::write(users, "x", 1), 1) << "closed under the program's hands";
  EXPECT_EQ(std::filesystem::file_size(folder / "user.txt"), 1U);
}

TEST(writer, refuses_a_file_that_another_writer_has_open) {
  const test::temporary_folder folder;
  const writer first{folder / "a.opscope", false, "{}"};
  const auto message = message_of([&] { writer{folder / "a.opscope", true, "{}"}; });
  EXPECT_NE(message.find("another process is writing it"), std::string::npos) << message;
}

TEST(writer, sets_aside_the_partial_file_of_a_dead_process) {
  const test::temporary_folder folder;
  for (int run = 0; run < 2; ++run) {
    std::vector<op> rows{make_row<op>(1, 2)};
    writer{folder / "a.opscope", false, "{}"}.append(std::span{rows});  // and never closed
  }
  writer to{folder / "a.opscope", false, "{}"};
  EXPECT_EQ(to.set_aside(), folder / "a.opscope.partial.2") << "an earlier one is kept";
  for (const auto* kept : {"a.opscope.partial.1", "a.opscope.partial.2"}) {
    const auto read = capture::open(folder / kept);
    ASSERT_TRUE(read.ok()) << kept;
    EXPECT_EQ(test::all<op>(read.value()).size(), 1U) << kept;
  }
  to.close(timestamp{1}, {});
  EXPECT_TRUE(capture::open(folder / "a.opscope").ok());
}

TEST(writer, leaves_alone_a_partial_file_that_a_living_process_writes) {
  const test::temporary_folder folder;
  const writer first{folder / "a.opscope", false, "{}"};
  const auto message = message_of([&] { writer{folder / "a.opscope", false, "{}"}; });
  EXPECT_NE(message.find("another process is writing it"), std::string::npos) << message;
  EXPECT_FALSE(std::filesystem::exists(folder / "a.opscope.partial.1"));
}

TEST(writer, does_not_replace_a_file_that_came_meanwhile) {
  const test::temporary_folder folder;
  writer to{folder / "a.opscope", false, "{}"};
  std::ofstream{folder / "a.opscope"} << "precious";
  const auto message = message_of([&] { to.close(timestamp{1}, {}); });
  EXPECT_NE(message.find("File exists (another file took the name"), std::string::npos) << message;
  EXPECT_EQ(std::filesystem::file_size(folder / "a.opscope"), 8U);
  EXPECT_TRUE(capture::open(folder / "a.opscope.partial").ok()) << "the capture is kept";
}

TEST(writer, replaces_files_only) {
  const test::temporary_folder folder;
  std::filesystem::create_symlink("/dev/null", folder / "a.opscope");
  const auto message = message_of([&] { writer{folder / "a.opscope", true, "{}"}; });
  EXPECT_NE(message.find("is no file (choose another output)"), std::string::npos) << message;
  EXPECT_TRUE(std::filesystem::is_symlink(folder / "a.opscope"));
}

TEST(writer, does_not_write_where_a_link_leads) {
  const test::temporary_folder folder;
  std::filesystem::create_symlink(folder / "elsewhere", folder / "a.opscope.partial");
  const auto message = message_of([&] { writer{folder / "a.opscope", false, "{}"}; });
  EXPECT_NE(message.find("cannot create"), std::string::npos) << message;
  EXPECT_FALSE(std::filesystem::exists(folder / "elsewhere"));
}

TEST(writer, refuses_a_path_with_a_nul_byte) {
  const test::temporary_folder folder;
  const auto path = folder / std::string{"x\0y", 3};
  const auto message = message_of([&] { writer{path, false, "{}"}; });
  EXPECT_NE(message.find("NUL byte"), std::string::npos) << message;
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST(writer, says_why_an_output_cannot_be_written_and_what_to_do) {
  const auto message = message_of([] { writer{"/proc/nowhere/a.opscope", false, "{}"}; });
  EXPECT_EQ(message,
            "cannot create '/proc/nowhere/a.opscope': No such file or directory (create the "
            "folder first)");
}

TEST(writer, reports_a_full_disk_at_the_start) {
  const test::temporary_folder folder;
  std::filesystem::create_symlink("/dev/full", folder / "a.opscope.partial");
  const auto message = message_of([&] { writer{folder / "a.opscope", true, "{}"}; });
  EXPECT_NE(message.find("No space left on device (free some space"), std::string::npos) << message;
}

TEST(writer, keeps_what_was_written_before_the_disk_refused) {
  const test::temporary_folder folder;
  const pid_t child = fork();
  if (child == 0) {
    std::signal(SIGXFSZ, SIG_IGN);
    writer to{folder / "a.opscope", false, R"({"start_ns":"1"})"};
    std::vector<op> rows{make_row<op>(1, 2)};
    to.append(std::span{rows});
    const rlimit limit{to.bytes_written() + 100, to.bytes_written() + 100};
    setrlimit(RLIMIT_FSIZE, &limit);
    std::vector<op> more;
    for (int i = 0; i < 1000; ++i) {
      more.push_back(make_row<op>(i * 7919, i * 104729, static_cast<std::uint8_t>(i)));
    }
    const auto message = message_of([&] { to.append(std::span{more}); });
    _exit(message.find("ulimit -f") == std::string::npos ? 1 : 0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(WEXITSTATUS(status), 0);
  const auto read = capture::open(folder / "a.opscope.partial");
  ASSERT_TRUE(read.ok());
  EXPECT_TRUE(read.value().recovered());
  EXPECT_EQ(test::all<op>(read.value()).size(), 1U);
  EXPECT_EQ(read.value().collected().count(outcome::skipped, "cpu_op"), 0U);
}

TEST(writer, never_takes_the_number_of_a_closed_stream) {
  const test::temporary_folder folder;
  const pid_t child = fork();
  if (child == 0) {
    for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) ::close(stream);
    writer to{folder / "a.opscope", false, "{}"};
    for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
      if (::write(stream, "over the header", 15) != -1) _exit(1);
    }
    to.close(timestamp{1}, {});
    const auto read = capture::open(folder / "a.opscope");
    if (!read.ok() || ::fcntl(STDIN_FILENO, F_GETFD) != -1) _exit(2);
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST(writer, discard_leaves_nothing) {
  const test::temporary_folder folder;
  writer to{folder / "a.opscope", false, "{}"};
  to.discard();
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST(writer, refuses_a_document_above_the_limit_of_a_segment) {
  const test::temporary_folder folder;
  writer to{folder / "a.opscope", false, "{}"};
  const std::string large(65U << 20, 'x');
  EXPECT_NE(message_of([&] { to.document("large", large); }).find("above the limit"),
            std::string::npos);
  to.close(timestamp{1}, {});
  EXPECT_TRUE(capture::open(folder / "a.opscope").ok());
}

}  // namespace
}  // namespace opscope::capture
