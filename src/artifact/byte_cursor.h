// SPDX-License-Identifier: Apache-2.0
// Where are we in a run of foreign bytes? Bounded reads of plain numbers in either byte order.
// Views the bytes, owns nothing.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string_view>

namespace plimsoll::artifact {

class ByteCursor {
 public:
  explicit ByteCursor(std::span<const std::byte> bytes) : bytes_(bytes) {}

  std::int64_t size() const { return static_cast<std::int64_t>(bytes_.size()); }
  std::int64_t position() const { return static_cast<std::int64_t>(at_); }
  std::int64_t left() const { return size() - position(); }
  /// From here on numbers are stored in the other byte order.
  void swap_bytes() { swap_ = true; }

  /// The next number; false, and nothing consumed, when the bytes end before it.
  template <class T>
  bool read(T& value) {
    if (bytes_.size() - at_ < sizeof(T)) return false;
    std::array<std::byte, sizeof(T)> raw;
    std::memcpy(raw.data(), bytes_.data() + at_, sizeof(T));
    if (swap_) std::reverse(raw.begin(), raw.end());
    value = std::bit_cast<T>(raw);
    at_ += sizeof(T);
    return true;
  }

  /// The next `length` bytes as text; nothing when fewer are left or `length` is negative.
  std::optional<std::string_view> text(std::int64_t length) {
    if (length < 0 || length > left()) return std::nullopt;
    const auto part = bytes_.subspan(at_, static_cast<std::size_t>(length));
    at_ += part.size();
    return std::string_view(reinterpret_cast<const char*>(part.data()), part.size());
  }

 private:
  std::span<const std::byte> bytes_;
  std::size_t at_ = 0;
  bool swap_ = false;
};

}  // namespace plimsoll::artifact
