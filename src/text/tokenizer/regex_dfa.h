// SPDX-License-Identifier: Apache-2.0
// Runs an expression as a finite automaton: one table look-up per character, the same match that a
// backtracking engine would prefer. Says where matches lie; what they are for is the caller's. A RegexDfa is
// immutable; any number of threads may match with one. Building: regex_dfa_builder.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "text/tokenizer/regex.h"
#include "text/tokenizer/regex_parser.h"
#include "text/tokenizer/symbol_classes.h"

namespace plimsoll::text {

class RegexDfa {
 public:
  /// Nothing when the expression needs more than a bounded automaton; see compile_program.
  static std::optional<RegexDfa> build(const RegexNode& root);

  /// The first match that starts at or behind `from`, empty ones passed over unless they are to be kept.
  std::optional<Span> find(std::string_view utf8, std::size_t from, bool keep_empty) const;
  /// As Regex::find_some.
  std::size_t find_some(std::string_view utf8, Regex::Cursor& cursor, std::span<Span> out) const;

 private:
  friend class RegexDfaBuilder;

  // What one symbol does to a state. Two tables hold such steps. In `steps_` a state is inside one match and
  // kEnds says that a match may end in front of the symbol; state 0 is dead. In `tiling_` a match that is
  // over gives way to the next one within the same step: kEnds and kBegins say what happens in front of the
  // symbol, kRetry that the symbol fits nothing and an earlier end must be looked up.
  struct Step {
    std::uint16_t state = 0;
    std::uint16_t flags = 0;
  };
  static constexpr std::uint16_t kEnds = 1, kBegins = 2, kRetry = 4;

  const Step* column(const std::vector<Step>& table, std::size_t symbol) const {
    return table.data() + symbol * num_states_;
  }
  std::size_t symbol_at(std::string_view utf8, std::size_t at, std::size_t& bytes) const;
  std::uint16_t start_at(std::string_view utf8, std::size_t at) const;
  std::optional<std::size_t> match_at(std::string_view utf8, std::size_t begin,
                                      std::size_t& num_retried) const;

  std::size_t close(std::string_view utf8, Span& open, Regex::Cursor& cursor) const;

  SymbolClasses classes_;
  std::size_t num_states_ = 0;
  std::vector<Step> steps_, tiling_;         // [class or edge][state]
  std::array<std::uint32_t, 128> ascii_{};   // where the column of an ASCII character starts
  std::vector<std::uint16_t> start_behind_;  // [class or edge]: the start state behind such a symbol
  bool starts_alike_ = true;                 // whatever stands before
};

}  // namespace plimsoll::text
