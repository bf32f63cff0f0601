// SPDX-License-Identifier: Apache-2.0
// Regular expressions of tokenizer files: Oniguruma's flavour as far as such patterns use it, run by PCRE2
// with its JIT. A Regex is immutable; any number of threads may match with one.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "text/text.h"

namespace plimsoll::text {

class Regex {
 public:
  /// Errors: kUnsupported with the pattern and PCRE2's complaint.
  static Result<Regex> compile(std::string_view pattern);
  /// A pattern that matches exactly this text.
  static Regex literal(std::string_view text);

  /// All matches from left to right, without overlap and without empty ones. `utf8` must be valid. A pattern
  /// that backtracks beyond all measure stops matching there.
  std::vector<Span> find_all(std::string_view utf8) const;
  /// The first match that begins at `from` or behind it; {size, size} when there is none.
  Span find(std::string_view utf8, std::size_t from) const;

 private:
  struct Compiled;
  std::shared_ptr<const Compiled> compiled_;  // null: the literal
  std::string literal_;
};

}  // namespace plimsoll::text
