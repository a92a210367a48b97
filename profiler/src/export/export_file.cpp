// SPDX-License-Identifier: Apache-2.0
#include "export/export_file.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <ostream>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "capture/opening.hpp"
#include "capture/renaming.hpp"
#include "export/descriptor_buffer.hpp"
#include "export/gzip_stream.hpp"
#include "opscope/error.hpp"

namespace opscope::exporter {
namespace {

[[noreturn]] void refuse(const std::filesystem::path& out, const std::string& why,
                         const std::string& remedy) {
  throw error("export to " + out.string() + ": " + why + " (" + remedy + ")");
}

[[noreturn]] void refuse_write(const std::filesystem::path& out, int status) {
  refuse(out, std::strerror(status), std::string{remedy_of_write(status)});
}

[[noreturn]] void refuse_existing(const std::filesystem::path& out) {
  refuse(out, "the file exists", "choose another name, or pass --force");
}

/// The file while it is being written; gone unless it was published.
class partial_file {
 public:
  /// @param in_place `out` is a device or a pipe, which is no file to replace.
  partial_file(const std::filesystem::path& out, bool in_place)
      : path_{in_place ? out.string() : out.string() + ".partial-" + std::to_string(getpid())},
        stays_{in_place},
        descriptor_{capture::open_file(path_.c_str(), O_WRONLY | (in_place ? 0 : O_CREAT | O_TRUNC),
                                       0666)} {
    if (descriptor_ < 0) refuse(out, std::strerror(errno), "choose a path that can be written");
  }
  partial_file(const partial_file&) = delete;
  partial_file& operator=(const partial_file&) = delete;
  ~partial_file() {
    if (descriptor_ >= 0) ::close(descriptor_);
    std::error_code ignored;
    if (!stays_) std::filesystem::remove(path_, ignored);
  }

  [[nodiscard]] int descriptor() const noexcept { return descriptor_; }

  /// @param force replace a file that has the name by now.
  void publish(const std::filesystem::path& out, bool force) {
    if (::close(std::exchange(descriptor_, -1)) != 0) refuse_write(out, errno);
    if (stays_) return;
    const int status = force ? capture::rename_over(path_.c_str(), out.c_str())
                             : capture::rename_new(path_.c_str(), out.c_str());
    if (status == EEXIST) refuse_existing(out);
    if (status != 0) refuse(out, std::strerror(status), "choose a path that can be written");
    stays_ = true;
  }

 private:
  std::filesystem::path path_;
  bool stays_;
  int descriptor_;
};

/// Whether `out` is there and neither a file nor a folder.
bool is_device(const std::filesystem::path& out) {
  std::error_code unknown;
  const auto found = std::filesystem::status(out, unknown);
  return std::filesystem::exists(found) && !std::filesystem::is_regular_file(found) &&
         !std::filesystem::is_directory(found);
}

}  // namespace

const char* export_suffixes() noexcept { return ".json or .json.gz"; }

std::string_view remedy_of_write(int error_number) noexcept {
  switch (error_number) {
    case ENOSPC:
    case EDQUOT:
      return "free some space, or write elsewhere";
    case EFBIG:
      return "raise the limit on file sizes (ulimit -f), or write elsewhere";
    case EPIPE:
      return "keep the pipe open";
    default:
      return "write elsewhere";
  }
}

chrome_report export_file(const capture::capture& source, const std::filesystem::path& out,
                          bool force, file_form form) {
  const auto name = out.filename().string();
  const bool any_name = form == file_form::chrome;
  const bool compressed = name.ends_with(any_name ? ".gz" : ".json.gz");
  if (!any_name && !compressed && !name.ends_with(".json")) {
    refuse(out, "unknown suffix", std::string{"use "} + export_suffixes());
  }
  std::error_code unknown;
  const bool in_place = is_device(out);
  if (!force && !in_place && std::filesystem::exists(out, unknown)) refuse_existing(out);
  partial_file partial{out, in_place};
  descriptor_buffer buffer{partial.descriptor()};
  std::ostream file{&buffer};
  chrome_options options;
  options.trace_name = name;
  chrome_report report;
  if (compressed) {
    gzip_stream gzip{file};
    report = write_chrome(source, gzip, options);
    gzip.finish();
  } else {
    report = write_chrome(source, file, options);
  }
  file.flush();
  if (buffer.failure() != 0) refuse_write(out, buffer.failure());
  partial.publish(out, force);
  return report;
}

}  // namespace opscope::exporter
