// SPDX-License-Identifier: Apache-2.0
// Where do the parts of a large JSON text begin and end? One strict pass without a tree and without
// allocation, for headers and indices of 100,000 entries and for hostile ones of 100 MB. Values that are not
// plain are handed back as text, for base's exact reader. Strings and white space of more than 8 MB are
// refused, so that no more of a mapped text need be in memory at a time. Views the text, owns nothing; one
// thread.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace plimsoll::artifact {

class JsonScan {
 public:
  /// `allows_constants`: NaN and the infinities are values, as Python's json reads and writes them.
  explicit JsonScan(std::string_view text, bool allows_constants = false)
      : begin_(text.data()),
        at_(text.data()),
        end_(text.data() + text.size()),
        allows_constants_(allows_constants) {}

  /// Byte offset of the next unread byte: after a refusal, where the text stops being JSON.
  std::size_t position() const { return static_cast<std::size_t>(at_ - begin_); }
  /// What is not read yet; a caller that knows what stands there may leave it out with `advance`.
  std::string_view rest() const { return {at_, static_cast<std::size_t>(end_ - at_)}; }
  void advance(std::size_t count) { at_ += count; }
  bool is_at_end() const { return at_ == end_; }
  /// What made the last call say no: "" or a reason beyond bad syntax (too deep, not UTF-8).
  std::string_view reason() const { return reason_; }
  bool is_bad_utf8() const { return is_bad_utf8_; }

  void skip_space() {
    const char* limit = at_ + std::min(end_ - at_, kLongest);
    while (at_ != limit && (*at_ == ' ' || *at_ == '\n' || *at_ == '\r' || *at_ == '\t')) ++at_;
  }
  /// Takes `c` when it is next, after white space.
  bool take(char c) {
    if (at_ != end_ && *at_ == c) {
      ++at_;
      return true;
    }
    return take_after_space(c);
  }
  /// The next byte after white space; 0 at the end.
  char peek() {
    skip_space();
    return at_ == end_ ? '\0' : *at_;
  }

  /// A string of printable ASCII without escapes, quotes not included; nothing, and nothing taken, for any
  /// other.
  std::optional<std::string_view> plain_string();
  /// Any string: appended to `text` with its escapes resolved. Refuses control characters, unknown escapes,
  /// lone surrogates and bytes that are not UTF-8.
  bool string(std::string& text);
  /// Plain digits below 10^18; nothing, and nothing taken, for any other number.
  std::optional<std::int64_t> plain_number();
  /// Any value, not looked into: its text. Refuses bad syntax and more than `max_depth` levels.
  std::optional<std::string_view> value(int max_depth);

 private:
  bool take_after_space(char c);
  bool skip_string();
  bool skip_scalar();
  bool escape(std::string* text);
  bool hex4(unsigned& unit);
  bool multibyte(std::string* text);
  bool string_body(std::string* text);
  bool refuse(std::string_view reason) {
    reason_ = reason;
    return false;
  }

  static constexpr std::ptrdiff_t kLongest = std::ptrdiff_t{8} << 20;

  const char* begin_;
  const char* at_;
  const char* end_;
  bool allows_constants_;
  std::string_view reason_;
  bool is_bad_utf8_ = false;
};

}  // namespace plimsoll::artifact
