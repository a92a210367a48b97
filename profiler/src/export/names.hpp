// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace opscope::exporter {

/// "Memcpy HtoD (Pageable -> Device)", from CUPTI's copy and memory kinds.
[[nodiscard]] std::string copy_name(std::uint32_t copy_kind, std::uint32_t source_kind,
                                    std::uint32_t target_kind);

/// "Memset (Device)".
[[nodiscard]] std::string fill_name(std::uint32_t memory_kind);

/// "Stream Sync", "Context Sync", "Event Sync", "Stream Wait Event".
[[nodiscard]] std::string_view synchronization_name(std::uint32_t type) noexcept;

/// The part of a source path that tells files apart: from site-packages on, else the file's name.
[[nodiscard]] std::string_view short_path(std::string_view path) noexcept;

}  // namespace opscope::exporter
