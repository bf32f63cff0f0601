// SPDX-License-Identifier: Apache-2.0
// What does a regular expression of a tokenizer file say? A tree, read the way the reference's Oniguruma
// reads it (Ruby's syntax: ^ and $ are about lines, {n}+ repeats, {n}? is optional, (?m:) lets a dot match a
// line feed). Characters are resolved to sets here; whoever runs the tree needs no Unicode table. Values; any
// thread.
#pragma once

#include <string_view>
#include <vector>

#include "base/result.h"
#include "text/unicode_sets.h"

namespace plimsoll::text {

/// What one neighbour of a position must be: a character of the set, or (when `takes_edge`) no character at
/// all, the text's beginning or end.
struct NeighbourCondition {
  bool is_free = true;  // nothing is asked
  CodePointSet set;
  bool takes_edge = false;
};

struct RegexNode {
  enum class Kind {
    kEmpty,
    kSet,        // one character of `set`
    kConcat,     // `children` one after the other
    kAlternate,  // the first of `children` that fits
    kRepeat,     // children[0], `min` to `max` times
    kAssert,     // a position between neighbours that fulfil `behind` and `ahead`
    kLook,       // children[0] matches here (or ends here, or must not): more than one character
    kAtomic      // children[0] without giving anything back
  };
  enum class Greed { kGreedy, kLazy };
  static constexpr int kUnlimited = -1;

  Kind kind = Kind::kEmpty;
  std::vector<RegexNode> children;
  CodePointSet set;
  int min = 0;
  int max = 0;
  Greed greed = Greed::kGreedy;
  NeighbourCondition behind, ahead;
  bool looks_behind = false;
  bool is_negative = false;
};

/// Whose expressions are read. kRust is fancy-regex, which tiktoken uses: there {n,m}+ is possessive, {n}?
/// lazy, ^ and $ are about the text, (?s:) lets a dot match a line feed, and \w is the regex crate's.
enum class RegexFlavour { kOniguruma, kRust };

/// The tree of `pattern`. A group that captures is a plain group.
/// Errors: kUnsupported with the construct (back references, \R, \X, \Z, unknown properties, nesting beyond
/// 100 ...) and its place.
/// Source: tokenizers 0.23.3, whose behaviour in doubtful places was tried out.
Result<RegexNode> parse_regex(std::string_view pattern, RegexFlavour flavour = RegexFlavour::kOniguruma);

/// True when it may match without a character.
bool can_be_empty(const RegexNode& node);

}  // namespace plimsoll::text
