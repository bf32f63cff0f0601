// SPDX-License-Identifier: Apache-2.0
#include "text/tokenizer/regex.h"

#include <variant>

#include "text/tokenizer/regex_backtracking.h"
#include "text/tokenizer/regex_dfa.h"
#include "text/tokenizer/regex_parser.h"

namespace plimsoll::text {
namespace {

constexpr std::size_t kMaxPatternBytes = 64 * 1024;

}  // namespace

struct Regex::Compiled {
  std::variant<RegexDfa, BacktrackingRegex> engine;
  bool can_match_empty = true;
};

Result<Regex> Regex::compile(std::string_view pattern, Engine engine, RegexFlavour flavour) {
  if (pattern.size() > kMaxPatternBytes)
    return fail(ErrorCode::kUnsupported, "a regular expression is longer than 64 KiB");
  const auto tree = parse_regex(pattern, flavour);
  Regex regex;
  if (tree && engine == Engine::kFastest) {
    if (auto automaton = RegexDfa::build(*tree)) {
      regex.compiled_ =
          std::make_shared<const Compiled>(Compiled{std::move(*automaton), can_be_empty(*tree)});
      return regex;
    }
  }
  auto backtracking = tree ? BacktrackingRegex::compile(*tree) : BacktrackingRegex::compile(pattern);
  if (!backtracking) {
    // What our parser does not know, PCRE2 may; when it does not, our place is the better one.
    Error error = tree ? backtracking.error() : tree.error();
    error.message += " in " + std::string(pattern);
    return fail(std::move(error));
  }
  regex.compiled_ =
      std::make_shared<const Compiled>(Compiled{std::move(*backtracking), !tree || can_be_empty(*tree)});
  return regex;
}

Regex Regex::literal(std::string_view text) {
  Regex regex;
  regex.literal_ = std::string(text);
  return regex;
}

bool Regex::is_automaton() const {
  return !compiled_ || std::holds_alternative<RegexDfa>(compiled_->engine);
}

std::optional<Span> Regex::find(std::string_view utf8, std::size_t from) const {
  if (compiled_)
    return std::visit([&](const auto& engine) { return engine.find(utf8, from, false); }, compiled_->engine);
  const std::size_t at = literal_.empty() ? std::string_view::npos : utf8.find(literal_, from);
  if (at == std::string_view::npos) return std::nullopt;
  return Span{at, at + literal_.size()};
}

std::size_t Regex::find_some(std::string_view utf8, Cursor& cursor, std::span<Span> out) const {
  if (compiled_)
    if (const auto* automaton = std::get_if<RegexDfa>(&compiled_->engine))
      return automaton->find_some(utf8, cursor, out);
  for (std::size_t num_found = 0; num_found < out.size(); ++num_found) {
    const auto found = find(utf8, cursor.at);
    cursor.at = found ? found->end : utf8.size();
    if (!found) return num_found;
    out[num_found] = *found;
  }
  return out.size();
}

std::vector<Span> Regex::find_all(std::string_view utf8) const {
  std::vector<Span> spans;
  Span some[64];
  for (Cursor cursor; cursor.at < utf8.size();) {
    const std::size_t num_found = find_some(utf8, cursor, some);
    spans.insert(spans.end(), some, some + num_found);
  }
  return spans;
}

bool Regex::can_match_empty() const {
  return compiled_ && compiled_->can_match_empty;
}

std::vector<Span> Regex::find_all_with_empty(std::string_view utf8) const {
  if (!compiled_) return find_all(utf8);
  std::vector<Span> spans;
  for (std::size_t from = 0; from <= utf8.size();) {
    const auto found =
        std::visit([&](const auto& engine) { return engine.find(utf8, from, true); }, compiled_->engine);
    if (!found) break;
    from = found->end;
    if (found->begin < found->end || spans.empty() || spans.back().end != from) {
      spans.push_back(*found);
    } else {  // empty, and right behind another match
      ++from;
      while (from < utf8.size() && (static_cast<unsigned char>(utf8[from]) & 0xC0u) == 0x80u) ++from;
    }
  }
  return spans;
}

}  // namespace plimsoll::text
