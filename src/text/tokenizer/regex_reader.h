// SPDX-License-Identifier: Apache-2.0
// The characters of a regular expression: single ones, escapes and bracketed classes, as sets. Leaves groups,
// alternatives and quantifiers to regex_parser.h. A reader holds a view of the pattern; one thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "text/unicode_sets.h"

namespace plimsoll::text {

/// One character, or a set where an escape stands for several.
struct CharacterOrSet {
  char32_t character = 0;
  std::optional<CodePointSet> set;
};

class RegexReader {
 public:
  struct Options {
    bool ignores_case = false;
    bool dot_takes_line_feed = false;
    bool has_rust_words = false;  // \w is the regex crate's
  };

  explicit RegexReader(std::string_view pattern) : pattern_(pattern) {}

  Options& options() { return options_; }
  std::size_t position() const { return at_; }
  void go_back_to(std::size_t position) { at_ = position; }
  bool at_end() const { return at_ >= pattern_.size(); }
  /// The byte here or `further` on; 0 behind the end.
  char peek(std::size_t further = 0) const {
    return at_ + further < pattern_.size() ? pattern_[at_ + further] : '\0';
  }
  /// Steps over `text` when it comes next.
  bool take(std::string_view text);
  /// A decimal number of at most `limit`; nothing, and no step, where there is none.
  std::optional<int> take_number(int limit);
  Status skip_behind(char last);

  /// The next character or escape. Errors: kUnsupported.
  Result<CharacterOrSet> read_character(bool in_class);
  /// The rest of a class whose bracket was taken. Errors: kUnsupported.
  Result<CodePointSet> read_class(int depth);

  /// The error that names what cannot be read.
  tl::unexpected<Error> refuse(const std::string& what) const;

 private:
  Result<CharacterOrSet> read_escape(bool in_class);
  Result<CharacterOrSet> read_hexadecimal(std::size_t min_digits, std::size_t max_digits);
  Result<CharacterOrSet> read_property(bool is_negative, bool in_class);
  Result<std::optional<CodePointSet>> read_posix();
  Result<CodePointSet> read_class_item();

  std::string_view pattern_;
  std::size_t at_ = 0;
  Options options_;
};

}  // namespace plimsoll::text
