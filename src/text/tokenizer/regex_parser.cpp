// SPDX-License-Identifier: Apache-2.0
#include "text/tokenizer/regex_parser.h"

#include <optional>
#include <string>
#include <utility>

#include "text/tokenizer/regex_nodes.h"
#include "text/tokenizer/regex_reader.h"

namespace plimsoll::text {
namespace {

constexpr int kMaxDepth = 100;
constexpr int kMaxStackedQuantifiers = 4;  // a**+?
constexpr int kMaxRepeat = 100'000;        // Oniguruma's own limit

class Parser {
 public:
  Parser(std::string_view pattern, RegexFlavour flavour)
      : reader_(pattern), is_rust_(flavour == RegexFlavour::kRust) {
    reader_.options().has_rust_words = is_rust_;
  }

  Result<RegexNode> parse() {
    PLIMSOLL_TRY(RegexNode root, alternation(0));
    if (!reader_.at_end()) return reader_.refuse("an unmatched )");
    return root;
  }

 private:
  struct Interval {
    int min = 0, max = 0;
  };

  Result<RegexNode> alternation(int depth) {
    if (depth > kMaxDepth) return reader_.refuse("groups nested beyond 100");
    std::vector<RegexNode> ways;
    do {
      PLIMSOLL_TRY(RegexNode way, sequence(depth));
      ways.push_back(std::move(way));
    } while (reader_.take("|"));
    return alternation_of(std::move(ways));
  }

  Result<RegexNode> sequence(int depth) {
    std::vector<RegexNode> parts;
    while (!reader_.at_end() && reader_.peek() != '|' && reader_.peek() != ')') {
      if (reader_.take("(?#")) {
        PLIMSOLL_TRY_VOID(reader_.skip_behind(')'));
        continue;
      }
      PLIMSOLL_TRY(RegexNode part, atom(depth));
      PLIMSOLL_TRY(part, quantified(std::move(part)));
      parts.push_back(std::move(part));
    }
    return concat_of(std::move(parts));
  }

  Result<RegexNode> atom(int depth) {
    const bool ignores_case = reader_.options().ignores_case;
    if (reader_.take("(")) return group(depth);
    if (reader_.take("^")) return is_rust_ ? text_begin() : line_begin();
    if (reader_.take("$")) return is_rust_ ? text_end() : line_end();
    if (reader_.take("\\A")) return text_begin();
    if (reader_.take("\\z")) return text_end();
    if (reader_.take("\\b")) return word_boundary(false);
    if (reader_.take("\\B")) return word_boundary(true);
    if (reader_.take(".")) {
      if (reader_.options().dot_takes_line_feed) return node_of(~CodePointSet());
      return node_of(~CodePointSet::of(U'\n', U'\n'));
    }
    if (reader_.take("[")) {
      PLIMSOLL_TRY(CodePointSet set, reader_.read_class(0));
      return node_of(std::move(set));
    }
    const char c = reader_.peek();
    if (c == '*' || c == '+' || c == '?') return reader_.refuse("a quantifier of nothing");
    PLIMSOLL_TRY(CharacterOrSet one, reader_.read_character(false));
    if (one.set) return node_of(std::move(*one.set));
    const CodePointSet set = CodePointSet::of(one.character, one.character);
    return node_of(ignores_case ? set.with_other_cases() : set);
  }

  Result<RegexNode> closed(Result<RegexNode> body) {
    if (body && !reader_.take(")")) return reader_.refuse("a group that does not end");
    return body;
  }

  // Behind the opening parenthesis. What options a group sets ends with it.
  Result<RegexNode> group(int depth) {
    const RegexReader::Options outside = reader_.options();
    sets_options_ = false;
    PLIMSOLL_TRY(RegexNode node, group_kind(depth));
    if (!std::exchange(sets_options_, false)) reader_.options() = outside;
    return node;
  }

  Result<RegexNode> group_kind(int depth) {
    if (!reader_.take("?")) return closed(alternation(depth + 1));
    if (reader_.take(":")) return closed(alternation(depth + 1));
    if (reader_.take(">")) {
      PLIMSOLL_TRY(RegexNode body, closed(alternation(depth + 1)));
      return atomic_of(std::move(body));
    }
    const bool looks_behind = reader_.peek() == '<' && (reader_.peek(1) == '=' || reader_.peek(1) == '!');
    if (looks_behind) reader_.take("<");
    if (reader_.peek() == '=' || reader_.peek() == '!') {
      const bool is_negative = reader_.peek() == '!';
      reader_.take(is_negative ? "!" : "=");
      PLIMSOLL_TRY(RegexNode body, closed(alternation(depth + 1)));
      return look_of(std::move(body), looks_behind, is_negative);
    }
    if (reader_.peek() == '<') {  // a name, which nothing can refer to
      PLIMSOLL_TRY_VOID(reader_.skip_behind('>'));
      return closed(alternation(depth + 1));
    }
    return with_options(depth);
  }

  // (?i-m:...) or (?i) up to the end of the group around it, alternatives included.
  Result<RegexNode> with_options(int depth) {
    bool value = true;
    for (;;) {
      if (reader_.take("-"))
        value = false;
      else if (reader_.take("i"))
        reader_.options().ignores_case = value;
      else if (reader_.take(is_rust_ ? "s" : "m"))
        reader_.options().dot_takes_line_feed = value;
      else if (reader_.take(":"))
        return closed(alternation(depth + 1));
      else if (reader_.take(")"))
        return options_only(depth);
      else
        return reader_.refuse("a group of unknown kind");
    }
  }

  // Rust's own options stay for the group around them; Oniguruma's take in what that group still holds.
  Result<RegexNode> options_only(int depth) {
    if (!is_rust_) return alternation(depth + 1);
    sets_options_ = true;
    return RegexNode();
  }

  std::optional<Interval> take_interval() {
    const std::size_t start = reader_.position();
    reader_.take("{");
    const auto min = reader_.take_number(kMaxRepeat);
    auto max = min;
    if (reader_.take(",")) {
      max = reader_.take_number(kMaxRepeat);
      if (min && !max) max = RegexNode::kUnlimited;
    }
    if (max && reader_.take("}")) return Interval{min.value_or(0), *max};
    reader_.go_back_to(start);  // a brace like any other character
    return std::nullopt;
  }

  Result<RegexNode> quantified(RegexNode node) {
    using Greed = RegexNode::Greed;
    for (int stacked = 0;; ++stacked) {
      const char c = reader_.peek();
      if (c != '*' && c != '+' && c != '?' && c != '{') return node;
      if (stacked == kMaxStackedQuantifiers) return reader_.refuse("more than four quantifiers in a row");
      if (c == '{') {
        const auto interval = take_interval();
        if (!interval) return node;
        if (interval->max != RegexNode::kUnlimited && interval->max < interval->min)
          return reader_.refuse("an interval with its bounds swapped");
        const bool is_fixed = interval->max == interval->min;
        if (is_rust_ && reader_.take("+")) {
          node = possessive_of(std::move(node), interval->min, interval->max);
          continue;
        }
        const bool is_lazy = (is_rust_ || !is_fixed) && reader_.take("?");  // else {n}? is an optional {n}
        node = repetition_of(std::move(node), interval->min, interval->max,
                             is_lazy ? Greed::kLazy : Greed::kGreedy);
        continue;
      }
      reader_.take(std::string_view(&c, 1));
      const int min = c == '+' ? 1 : 0;
      const int max = c == '?' ? 1 : RegexNode::kUnlimited;
      if (reader_.take("+"))
        node = possessive_of(std::move(node), min, max);
      else
        node = repetition_of(std::move(node), min, max, reader_.take("?") ? Greed::kLazy : Greed::kGreedy);
    }
  }

  RegexReader reader_;
  bool is_rust_ = false;
  bool sets_options_ = false;  // the group just read was options alone
};

}  // namespace

Result<RegexNode> parse_regex(std::string_view pattern, RegexFlavour flavour) {
  return Parser(pattern, flavour).parse();
}

}  // namespace plimsoll::text
