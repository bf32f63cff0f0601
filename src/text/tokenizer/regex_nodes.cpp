// SPDX-License-Identifier: Apache-2.0
#include "text/tokenizer/regex_nodes.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace plimsoll::text {
namespace {

using Kind = RegexNode::Kind;

NeighbourCondition condition(CodePointSet set, bool takes_edge) {
  return {false, std::move(set), takes_edge};
}

RegexNode between(NeighbourCondition behind, NeighbourCondition ahead) {
  RegexNode node;
  node.kind = Kind::kAssert;
  node.behind = std::move(behind);
  node.ahead = std::move(ahead);
  return node;
}

RegexNode followed_by_none_of(const CodePointSet& set) {
  return between({}, condition(~set, true));
}

CodePointSet line_feed() {
  return CodePointSet::of(U'\n', U'\n');
}

// What a look-around's body says about one neighbour, when that is all it says.
std::optional<NeighbourCondition> as_condition(const RegexNode& node, bool looks_behind) {
  if (node.kind == Kind::kSet) return condition(node.set, false);
  if (node.kind == Kind::kAssert) {
    const auto& near = looks_behind ? node.behind : node.ahead;
    const auto& far = looks_behind ? node.ahead : node.behind;
    if (near.is_free || !far.is_free) return std::nullopt;
    return near;
  }
  if (node.kind != Kind::kAlternate) return std::nullopt;
  NeighbourCondition any = condition({}, false);
  for (const RegexNode& child : node.children) {
    const auto one = as_condition(child, looks_behind);
    if (!one) return std::nullopt;
    any.set = any.set | one->set;
    any.takes_edge = any.takes_edge || one->takes_edge;
  }
  return any;
}

}  // namespace

bool can_be_empty(const RegexNode& node) {
  using Kind = RegexNode::Kind;
  const auto empty = [](const RegexNode& child) { return can_be_empty(child); };
  switch (node.kind) {
    case Kind::kSet:
      return false;
    case Kind::kConcat:
    case Kind::kAtomic:
      return std::all_of(node.children.begin(), node.children.end(), empty);
    case Kind::kAlternate:
      return std::any_of(node.children.begin(), node.children.end(), empty);
    case Kind::kRepeat:
      return node.min == 0 || can_be_empty(node.children.front());
    case Kind::kEmpty:
    case Kind::kAssert:
    case Kind::kLook:
      return true;
  }
  return true;
}

RegexNode node_of(CodePointSet set) {
  RegexNode node;
  node.kind = Kind::kSet;
  node.set = std::move(set);
  return node;
}

RegexNode concat_of(std::vector<RegexNode> children) {
  if (children.size() == 1) return std::move(children.front());
  RegexNode node;
  node.kind = children.empty() ? Kind::kEmpty : Kind::kConcat;
  node.children = std::move(children);
  return node;
}

RegexNode alternation_of(std::vector<RegexNode> children) {
  if (children.size() == 1) return std::move(children.front());
  RegexNode node;
  node.kind = Kind::kAlternate;
  node.children = std::move(children);
  return node;
}

RegexNode repetition_of(RegexNode child, int min, int max, RegexNode::Greed greed) {
  RegexNode node;
  node.kind = Kind::kRepeat;
  node.min = min;
  node.max = max;
  node.greed = greed;
  node.children.push_back(std::move(child));
  return node;
}

RegexNode possessive_of(RegexNode child, int min, int max) {
  using Greed = RegexNode::Greed;
  if (child.kind != Kind::kSet || max == 0)
    return atomic_of(repetition_of(std::move(child), min, max, Greed::kGreedy));
  // It ends where its character ends, or at its full length.
  std::vector<RegexNode> ways;
  if (max != RegexNode::kUnlimited) ways.push_back(repetition_of(child, max, max, Greed::kGreedy));
  if (max == RegexNode::kUnlimited || min < max) {
    const int shorter = max == RegexNode::kUnlimited ? max : max - 1;
    RegexNode end = followed_by_none_of(child.set);
    std::vector<RegexNode> parts;
    parts.push_back(repetition_of(std::move(child), min, shorter, Greed::kGreedy));
    parts.push_back(std::move(end));
    ways.push_back(concat_of(std::move(parts)));
  }
  return alternation_of(std::move(ways));
}

RegexNode atomic_of(RegexNode child) {
  if (child.kind == Kind::kSet) return child;  // nothing to give back
  RegexNode node;
  node.kind = Kind::kAtomic;
  node.children.push_back(std::move(child));
  return node;
}

RegexNode look_of(RegexNode child, bool looks_behind, bool is_negative) {
  if (auto said = as_condition(child, looks_behind)) {
    if (is_negative) said = condition(~said->set, !said->takes_edge);
    return looks_behind ? between(std::move(*said), {}) : between({}, std::move(*said));
  }
  RegexNode node;
  node.kind = Kind::kLook;
  node.looks_behind = looks_behind;
  node.is_negative = is_negative;
  node.children.push_back(std::move(child));
  return node;
}

RegexNode text_begin() {
  return between(condition({}, true), {});
}

RegexNode text_end() {
  return between({}, condition({}, true));
}

// Behind the last line feed of a text no line begins.
RegexNode line_begin() {
  return alternation_of(
      {text_begin(), between(condition(line_feed(), false), condition(~CodePointSet(), false))});
}

RegexNode line_end() {
  return between({}, condition(line_feed(), true));
}

RegexNode word_boundary(bool is_negative) {
  const CodePointSet word = *set_named("word") | *set_named("wordoutsideclass");
  const NeighbourCondition inside = condition(word, false);
  const NeighbourCondition outside = condition(~word, true);
  if (is_negative) return alternation_of({between(inside, inside), between(outside, outside)});
  return alternation_of({between(inside, outside), between(outside, inside)});
}

}  // namespace plimsoll::text
