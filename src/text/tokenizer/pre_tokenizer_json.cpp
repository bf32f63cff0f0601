// SPDX-License-Identifier: Apache-2.0
// The "pre_tokenizer" member of tokenizer.json.
#include "text/tokenizer/pattern_json.h"
#include "text/tokenizer/pre_tokenizer.h"
#include "text/tokenizer/word_mark.h"

namespace plimsoll::text {
namespace {

using Behavior = PreTokenizer::Behavior;
using Prefix = PreTokenizer::Prefix;

constexpr int kMaxDepth = 20;  // nested Sequences
constexpr std::int64_t kMaxFixedLength = 500;
constexpr const char* kWhere = "tokenizer.json: /pre_tokenizer";

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
              kWhere);
}

}  // namespace

Result<PreTokenizer> PreTokenizer::from_json(const Json& json) {
  PreTokenizer made;
  PLIMSOLL_TRY_VOID(made.add(json, 0));
  return made;
}

Status PreTokenizer::add_json_split(const Json& json) {
  Step step;
  PLIMSOLL_TRY(step.behavior, read_behavior(json["behavior"]));
  PLIMSOLL_TRY(step.pattern, read_pattern(json["pattern"], kWhere));
  step.splits = true;
  step.invert = json["invert"].as_bool().value_or(false);
  add_step(std::move(step));
  return {};
}

void PreTokenizer::add_metaspace(const Json& json) {
  const std::string* mark = json["replacement"].as_string();
  const std::string* scheme = json["prepend_scheme"].as_string();
  Prefix prefix = json["add_prefix_space"].as_bool().value_or(true) ? Prefix::kAlways : Prefix::kNever;
  if (scheme)
    prefix = *scheme == "first" ? Prefix::kFirst : *scheme == "never" ? Prefix::kNever : Prefix::kAlways;
  add_metaspace(mark ? *mark : std::string(kWordMark), prefix, json["split"].as_bool().value_or(true));
}

Status PreTokenizer::add(const Json& json, int depth) {
  if (json.is_null()) return {};
  const std::string* type = json["type"].as_string();
  if (!type) return fail(ErrorCode::kMalformed, "a pre-tokenizer has no type", kWhere);
  if (depth > kMaxDepth) return fail(ErrorCode::kMalformed, "pre-tokenizers are nested too deeply", kWhere);
  if (*type == "Sequence") {
    for (const Json& part : json["pretokenizers"].items()) {
      PLIMSOLL_TRY_VOID(add(part, depth + 1));
      PLIMSOLL_TRY_VOID(check_steps());
    }
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
  if (*type == "Metaspace") {
    add_metaspace(json);
    return {};
  }
  if (*type == "BertPreTokenizer") {
    add_bert();
    return {};
  }
  if (*type == "WhitespaceSplit") return add_split(R"(\p{rust_white_space})", Behavior::kRemoved);
  if (*type == "Whitespace")
    return add_split(R"(\p{rust_word}+|[^\p{rust_word}\p{rust_white_space}]+)", Behavior::kRemoved, true);
  if (*type == "CharDelimiterSplit" && json["delimiter"].as_string()) {
    Step step;
    step.splits = true;
    step.pattern = Regex::literal(*json["delimiter"].as_string());
    step.behavior = Behavior::kRemoved;
    add_step(std::move(step));
    return {};
  }
  if (*type == "FixedLength") {
    const auto length = json["length"].as_integer().value_or(5);
    if (length < 1 || length > kMaxFixedLength)
      return fail(ErrorCode::kUnsupported,
                  "pieces of " + std::to_string(length) + " characters are not supported", kWhere);
    return add_split("[\\x{0}-\\x{10FFFF}]{1," + std::to_string(length) + "}");
  }
  if (*type == "Split") return add_json_split(json);
  return fail(ErrorCode::kUnsupported, "pre-tokenizer kind " + *type + " is not supported", kWhere);
}

}  // namespace plimsoll::text
