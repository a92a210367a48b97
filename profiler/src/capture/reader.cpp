// SPDX-License-Identifier: Apache-2.0
#include "capture/reader.hpp"

#include <fmt/format.h>

#include <ranges>
#include <utility>

#include "capture/file.hpp"

namespace opscope::capture {

result<capture> capture::open(const std::filesystem::path& path) {
  auto source = input::open(path);
  if (!source) return source.error();
  auto index = find_segments(source.value());
  if (!index) {
    return read_error{fmt::format("cannot read '{}': {}", path.string(), index.error().message),
                      index.error().offset};
  }
  return capture{std::make_unique<file>(std::move(source).value(), std::move(index).value())};
}

std::uint64_t capture::count(record_kind kind) const noexcept { return file_->count(kind); }
std::string_view capture::text(string_id id) const noexcept { return file_->text(id); }
const std::vector<document>& capture::documents() const noexcept { return file_->documents; }

std::optional<std::string_view> capture::document_json(std::string_view name) const {
  for (const document& each : std::views::reverse(file_->documents)) {
    if (each.name == name) return each.json;
  }
  return std::nullopt;
}

timestamp capture::session_start() const noexcept { return file_->session_start; }
timestamp capture::session_end() const noexcept { return file_->session_end; }
const ledger& capture::collected() const noexcept { return file_->collected; }
bool capture::recovered() const noexcept { return file_->recovered; }
std::optional<std::uint64_t> capture::damage_offset() const noexcept {
  return file_->damage_offset;
}

capture::capture(std::unique_ptr<file> file) : file_{std::move(file)} {}
capture::capture(capture&&) noexcept = default;
capture& capture::operator=(capture&&) noexcept = default;
capture::~capture() = default;

}  // namespace opscope::capture
