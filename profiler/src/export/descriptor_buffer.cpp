// SPDX-License-Identifier: Apache-2.0
#include "export/descriptor_buffer.hpp"

#include <unistd.h>

#include <cerrno>

namespace opscope::exporter {

descriptor_buffer::descriptor_buffer(int descriptor) noexcept : descriptor_{descriptor} {
  setp(pending_.data(), pending_.data() + pending_.size());
}

descriptor_buffer::~descriptor_buffer() = default;

descriptor_buffer::int_type descriptor_buffer::overflow(int_type byte) {
  if (sync() != 0) return traits_type::eof();
  if (traits_type::eq_int_type(byte, traits_type::eof())) return traits_type::not_eof(byte);
  return sputc(traits_type::to_char_type(byte));
}

int descriptor_buffer::sync() {
  const char* next = pbase();
  while (failure_ == 0 && next < pptr()) {
    const auto count = ::write(descriptor_, next, static_cast<std::size_t>(pptr() - next));
    if (count > 0) {
      next += count;
    } else if (count == 0 || errno != EINTR) {
      failure_ = count == 0 ? ENOSPC : errno;
    }
  }
  // What a failed write leaves is given up.
  setp(pending_.data(), pending_.data() + pending_.size());
  return failure_ == 0 ? 0 : -1;
}

}  // namespace opscope::exporter
