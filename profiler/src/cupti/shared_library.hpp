// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace opscope::cupti {

/// A library opened at run time. It is never closed: CUPTI and the driver keep threads and exit
/// handlers of their own, so their code must stay mapped.
class shared_library {
 public:
  /// The copy that this process has loaded already; empty when there is none.
  /// @param path file name or full path, as dlopen takes it.
  [[nodiscard]] static shared_library loaded(const std::string& path) noexcept;

  /// Opens (or finds) the library; empty when it cannot be opened.
  [[nodiscard]] static shared_library open(const std::string& path) noexcept;

  shared_library() = default;
  shared_library(shared_library&& other) noexcept
      : handle_(std::exchange(other.handle_, nullptr)), path_(std::move(other.path_)) {}
  shared_library& operator=(shared_library&& other) noexcept {
    handle_ = std::exchange(other.handle_, nullptr);
    path_ = std::move(other.path_);
    return *this;
  }

  explicit operator bool() const noexcept { return handle_ != nullptr; }
  [[nodiscard]] const std::string& path() const noexcept { return path_; }

  /// Address of a symbol, nullptr when the library lacks it.
  [[nodiscard]] void* symbol(const char* name) const noexcept;

  /// Sets a function pointer from a symbol; false when the library lacks it.
  template <typename Function>
  bool bind(Function& function, const char* name) const noexcept {
    function = reinterpret_cast<Function>(symbol(name));
    return function != nullptr;
  }

 private:
  shared_library(void* handle, std::string path) : handle_(handle), path_(std::move(path)) {}

  void* handle_ = nullptr;
  std::string path_;
};

/// Full paths of the loaded libraries whose file name begins with `prefix` ("libcupti.so").
[[nodiscard]] std::vector<std::string> loaded_paths(std::string_view prefix);

}  // namespace opscope::cupti
