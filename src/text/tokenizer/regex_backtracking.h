// SPDX-License-Identifier: Apache-2.0
// Runs an expression that an automaton cannot: by PCRE2 with its JIT, in bounded steps. Immutable; any number
// of threads may match with one.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "text/tokenizer/regex.h"
#include "text/tokenizer/regex_parser.h"

namespace plimsoll::text {

class BacktrackingRegex {
 public:
  /// Errors: kUnsupported with PCRE2's complaint.
  static Result<BacktrackingRegex> compile(const RegexNode& root);
  /// For an expression that our parser refuses: PCRE2's own syntax and Unicode version, nearly the
  /// reference's.
  static Result<BacktrackingRegex> compile(std::string_view pattern);

  /// The first match at or behind `from`, empty ones passed over unless they are to be kept; nothing, too,
  /// when it takes too many steps.
  std::optional<Span> find(std::string_view utf8, std::size_t from, bool keep_empty) const;

 private:
  struct Code;
  static Result<BacktrackingRegex> from_pcre2(const std::string& expression);
  std::shared_ptr<const Code> code_;
};

}  // namespace plimsoll::text
