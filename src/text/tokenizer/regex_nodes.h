// SPDX-License-Identifier: Apache-2.0
// Building regular expression trees: the nodes that the parser puts together, with what can be said simpler
// said simpler (look-around of one character, possessive repetition of one character). Free functions; any
// thread.
#pragma once

#include "text/tokenizer/regex_parser.h"

namespace plimsoll::text {

RegexNode node_of(CodePointSet set);
RegexNode concat_of(std::vector<RegexNode> children);
RegexNode alternation_of(std::vector<RegexNode> children);
RegexNode repetition_of(RegexNode child, int min, int max, RegexNode::Greed greed);
/// Without giving back. Of one character it is a repetition that stops where the character stops.
RegexNode possessive_of(RegexNode child, int min, int max);
RegexNode atomic_of(RegexNode child);
/// Look-around; a condition on a neighbour where `child` is about one character.
RegexNode look_of(RegexNode child, bool looks_behind, bool is_negative);

RegexNode line_begin();
RegexNode line_end();
RegexNode text_begin();
RegexNode text_end();
RegexNode word_boundary(bool is_negative);

}  // namespace plimsoll::text
