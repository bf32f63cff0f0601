// SPDX-License-Identifier: Apache-2.0
#include "text/tokenizer/pre_tokenizer.h"

#include <algorithm>

#include "text/tokenizer/byte_level.h"

namespace plimsoll::text {
namespace {

constexpr int kMaxDepth = 20;  // nested Sequences
constexpr std::string_view kGpt2 =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
constexpr std::string_view kWhere = "tokenizer.json: /pre_tokenizer";

struct Part {
  Span span;
  bool is_match = false;
};

std::vector<Part> parts_of(std::string_view text, const Regex& pattern, bool invert) {
  std::vector<Part> parts;
  std::size_t at = 0;
  for (const Span span : pattern.find_all(text)) {
    if (span.begin > at) parts.push_back({{at, span.begin}, invert});
    parts.push_back({span, !invert});
    at = span.end;
  }
  if (at < text.size()) parts.push_back({{at, text.size()}, invert});
  return parts;
}

using Behavior = PreTokenizer::Behavior;

std::vector<Span> arranged(std::vector<Part> parts, Behavior behavior) {
  std::vector<Span> out;
  if (behavior == Behavior::kMergedWithNext) {  // the mirror image of merging with the previous part
    std::reverse(parts.begin(), parts.end());
  }
  bool previous = false;
  for (const Part& part : parts) {
    const bool merges =
        (behavior == Behavior::kContiguous && !out.empty() && part.is_match == previous) ||
        ((behavior == Behavior::kMergedWithPrevious || behavior == Behavior::kMergedWithNext) &&
         part.is_match && !previous && !out.empty());
    if (merges) {
      out.back() = {std::min(out.back().begin, part.span.begin), std::max(out.back().end, part.span.end)};
    } else if (behavior != Behavior::kRemoved || !part.is_match) {
      out.push_back(part.span);
    }
    previous = part.is_match;
  }
  if (behavior == Behavior::kMergedWithNext) std::reverse(out.begin(), out.end());
  return out;
}

Result<Behavior> read_behavior(const Json& json) {
  static constexpr std::pair<std::string_view, Behavior> kNames[] = {
      {"Isolated", Behavior::kIsolated},
      {"Removed", Behavior::kRemoved},
      {"MergedWithPrevious", Behavior::kMergedWithPrevious},
      {"MergedWithNext", Behavior::kMergedWithNext},
      {"Contiguous", Behavior::kContiguous}};
  const std::string* name = json.as_string();
  for (const auto& [known, behavior] : kNames)
    if (name && *name == known) return behavior;
  return fail(ErrorCode::kUnsupported, "split behavior " + (name ? *name : dump(json)) + " is not supported",
              std::string(kWhere));
}

}  // namespace

Result<PreTokenizer> PreTokenizer::from_json(const Json& json) {
  PreTokenizer made;
  PLIMSOLL_TRY_VOID(made.add(json, 0));
  return made;
}

Status PreTokenizer::add_split(std::string_view pattern, Behavior behavior, bool invert) {
  Step step;
  step.splits = true;
  PLIMSOLL_TRY(step.pattern, Regex::compile(pattern));
  step.behavior = behavior;
  step.invert = invert;
  steps_.push_back(std::move(step));
  return {};
}

Status PreTokenizer::add_digits(bool individual) {
  return add_split(R"(\p{N})", individual ? Behavior::kIsolated : Behavior::kContiguous);
}

Status PreTokenizer::add_punctuation(Behavior behavior) {
  return add_split(R"([!-/:-@\[-`{-~\p{P}])", behavior);
}

Status PreTokenizer::add_byte_level(bool add_prefix_space, bool use_regex) {
  Step step;
  step.is_byte_level = true;
  step.add_prefix_space = add_prefix_space;
  step.splits = use_regex;
  if (use_regex) {
    PLIMSOLL_TRY(step.pattern, Regex::compile(kGpt2));
  }
  steps_.push_back(std::move(step));
  has_byte_level_ = true;
  return {};
}

Status PreTokenizer::add(const Json& json, int depth) {
  if (json.is_null()) return {};
  const std::string* type = json["type"].as_string();
  if (!type) return fail(ErrorCode::kMalformed, "a pre-tokenizer has no type", std::string(kWhere));
  if (depth > kMaxDepth)
    return fail(ErrorCode::kMalformed, "pre-tokenizers are nested too deeply", std::string(kWhere));
  if (*type == "Sequence") {
    for (const Json& part : json["pretokenizers"].items()) PLIMSOLL_TRY_VOID(add(part, depth + 1));
    return {};
  }
  if (*type == "ByteLevel")
    return add_byte_level(json["add_prefix_space"].as_bool().value_or(true),
                          json["use_regex"].as_bool().value_or(true));
  if (*type == "Digits") return add_digits(json["individual_digits"].as_bool().value_or(false));
  if (*type == "Punctuation") {
    if (json["behavior"].is_null()) return add_punctuation(Behavior::kIsolated);
    PLIMSOLL_TRY(const Behavior behavior, read_behavior(json["behavior"]));
    return add_punctuation(behavior);
  }
  if (*type == "WhitespaceSplit") return add_split(R"(\s)", Behavior::kRemoved);
  if (*type == "Whitespace") return add_split(R"(\w+|[^\w\s]+)", Behavior::kRemoved, true);
  if (*type == "Split") {
    PLIMSOLL_TRY(const Behavior behavior, read_behavior(json["behavior"]));
    const bool invert = json["invert"].as_bool().value_or(false);
    if (const std::string* pattern = json["pattern"]["Regex"].as_string())
      return add_split(*pattern, behavior, invert);
    const std::string* text = json["pattern"]["String"].as_string();
    if (!text) return fail(ErrorCode::kMalformed, "a Split has no pattern", std::string(kWhere));
    steps_.push_back({false, false, true, Regex::literal(*text), behavior, invert});
    return {};
  }
  return fail(ErrorCode::kUnsupported, "pre-tokenizer kind " + *type + " is not supported",
              std::string(kWhere));
}

std::vector<std::string_view> PreTokenizer::split(std::string_view utf8,
                                                  std::deque<std::string>& storage) const {
  std::vector<std::string_view> pieces;
  if (!utf8.empty()) pieces.push_back(utf8);
  bool in_characters = false;
  for (std::size_t s = 0; s < steps_.size(); ++s) {
    const Step& step = steps_[s];
    // Only steps behind ByteLevel need to see its characters: usually there are none.
    const bool becomes_characters = step.is_byte_level && s + 1 < steps_.size();
    std::vector<std::string_view> next;
    next.reserve(pieces.size());
    const auto keep = [&](std::string_view piece) {
      if (becomes_characters) piece = storage.emplace_back(bytes_to_characters(piece));
      next.push_back(piece);
    };
    for (std::string_view piece : pieces) {
      if (step.add_prefix_space && !piece.starts_with(' '))
        piece = storage.emplace_back(" " + std::string(piece));
      if (!step.splits) {
        keep(piece);
        continue;
      }
      for (const Span span : arranged(parts_of(piece, step.pattern, step.invert), step.behavior))
        keep(piece.substr(span.begin, span.end - span.begin));
    }
    pieces = std::move(next);
    in_characters = in_characters || becomes_characters;
  }
  if (in_characters)
    for (std::string_view& piece : pieces) piece = storage.emplace_back(token_to_bytes(piece));
  return pieces;
}

}  // namespace plimsoll::text
