// SPDX-License-Identifier: Apache-2.0
// Where does a regular expression of a tokenizer file match? Read as the reference's Oniguruma reads it, with
// its Unicode version; run as a finite automaton, or by PCRE2 where an expression needs more than one
// character of look-around. A Regex is immutable; any number of threads may match with one.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "text/text.h"
#include "text/tokenizer/regex_parser.h"

namespace plimsoll::text {

class Regex {
 public:
  enum class Engine { kFastest, kBacktracking };

  /// The flavour is the file kind's: Oniguruma for tokenizer.json and GGUF, Rust for tiktoken's.
  /// Errors: kUnsupported with the pattern and what is wrong with it.
  static Result<Regex> compile(std::string_view pattern, Engine engine = Engine::kFastest,
                               RegexFlavour flavour = RegexFlavour::kOniguruma);
  /// A pattern that matches exactly this text.
  static Regex literal(std::string_view text);

  // All of these find matches from left to right, without overlap and without empty ones; of those that start
  // at one place, the one that a backtracking engine comes to first. `utf8` must be valid. An expression that
  // looks at a text again and again beyond all measure stops matching there.

  /// The first match at or behind `from`, which is the start of a character.
  std::optional<Span> find(std::string_view utf8, std::size_t from) const;
  /// How far the matches of one text have been taken.
  struct Cursor {
    std::size_t at = 0;           // the end of the text when there is nothing more
    std::size_t num_retried = 0;  // bytes that were looked at in vain
  };
  /// The next matches behind `cursor`, as many as are found before `out` is full; returns how many, which may
  /// be none before the text ends. `out` must hold three spans or more; large ones are fastest. This is the
  /// call of hot loops: no allocation, no branch per character.
  std::size_t find_some(std::string_view utf8, Cursor& cursor, std::span<Span> out) const;
  std::vector<Span> find_all(std::string_view utf8) const;

  /// Some expressions ((?=\d), x*) match the empty text; the reference cuts a text there, too.
  bool can_match_empty() const;
  /// As find_all, but with the empty matches that do not stand right behind another match.
  std::vector<Span> find_all_with_empty(std::string_view utf8) const;

  /// True when matching takes a time that grows with the text alone. For tests, which hold published
  /// expressions to it.
  bool is_automaton() const;

 private:
  struct Compiled;
  std::shared_ptr<const Compiled> compiled_;  // null: the literal
  std::string literal_;
};

}  // namespace plimsoll::text
