// SPDX-License-Identifier: Apache-2.0
// A regular expression as a small program whose threads run in order of preference: what regex_dfa_builder
// follows. Characters are classes of symbols that no set of the expression tells apart. Immutable values.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "text/tokenizer/regex_parser.h"
#include "text/tokenizer/symbol_classes.h"

namespace plimsoll::text {

struct RegexProgram {
  static constexpr std::uint32_t kFree = ~std::uint32_t{0};

  enum class Op : std::uint8_t { kSet, kSplit, kAssert, kMatch };
  struct Instruction {
    Op op = Op::kMatch;
    std::uint32_t next = 0;
    std::uint32_t other = 0;       // kSplit: second in preference
    std::uint32_t set = kFree;     // kSet; kAssert: the condition on the next symbol
    std::uint32_t behind = kFree;  // kAssert: the condition on the symbol before
  };

  std::vector<Instruction> code;
  std::uint32_t start = 0;
  SymbolClasses classes;
  /// [set][symbol]: the classes of characters, then the text's edge.
  std::vector<std::vector<bool>> members;

  std::size_t edge() const { return classes.num_classes; }
  bool fits(std::uint32_t set, std::size_t symbol) const { return set == kFree || members[set][symbol]; }
};

/// Nothing when the expression looks further than one character around, has an atomic group, repeats without
/// end what can be empty, or is too large.
std::optional<RegexProgram> compile_program(const RegexNode& root);

}  // namespace plimsoll::text
