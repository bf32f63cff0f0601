// SPDX-License-Identifier: Apache-2.0
#include "text/tokenizer/gguf_pre_tokenizer.h"

#include <algorithm>
#include <array>

#include "text/tokenizer/known_patterns.h"

namespace plimsoll::text {
namespace {

// How the pieces are cut: expressions, then digits, then GPT-2's own expression where it is wanted.
struct Rules {
  std::string_view name;
  std::array<const char*, 6> patterns = {};
  bool digits_first = false;  // every digit alone, before GPT-2's expression
  bool is_falcon = false;     // punctuation, GPT-2, digit runs, groups of three
  bool nfc = false;
  bool ignore_merges = false;
  bool adds_bos = false;  // when the file does not say
};

// Source: the pre-tokenizer names of llama.cpp (gguf key tokenizer.ggml.pre) and the tokenizer.json files
// that its converter takes them from; normal forms as in the latter.
constexpr Rules kRules[] = {
    {.name = "gpt-2"},
    {.name = "gpt2"},
    {.name = "phi-2"},
    {.name = "mpt"},
    {.name = "olmo"},
    {.name = "jais"},
    {.name = "trillion"},
    {.name = "roberta-bpe"},
    {.name = "gigachat"},
    {.name = "smollm", .digits_first = true},
    {.name = "starcoder", .digits_first = true},
    {.name = "refact", .digits_first = true},
    {.name = "codeshell", .digits_first = true},
    {.name = "exaone", .digits_first = true},
    {.name = "minerva-7b", .digits_first = true},
    {.name = "command-r", .digits_first = true, .nfc = true},
    {.name = "default", .is_falcon = true},
    {.name = "falcon", .is_falcon = true},
    {.name = "llama-bpe", .patterns = {kLlama3Pattern}, .ignore_merges = true, .adds_bos = true},
    {.name = "llama3", .patterns = {kLlama3Pattern}, .ignore_merges = true, .adds_bos = true},
    {.name = "llama-v3", .patterns = {kLlama3Pattern}, .ignore_merges = true, .adds_bos = true},
    {.name = "falcon3", .patterns = {kLlama3Pattern}, .ignore_merges = true, .adds_bos = true},
    {.name = "dbrx", .patterns = {kLlama3Pattern}},
    {.name = "smaug-bpe", .patterns = {kLlama3Pattern}},
    {.name = "chatglm-bpe", .patterns = {kLlama3Pattern}},
    {.name = "glm4", .patterns = {kLlama3Pattern}},
    {.name = "qwen2", .patterns = {kQwen2Pattern}, .nfc = true},
    {.name = "deepseek-r1-qwen", .patterns = {kQwen2Pattern}},
    {.name = "stablelm2", .patterns = {kQwen2Pattern}},
    {.name = "megrez", .patterns = {kQwen2Pattern}},
    {.name = "hunyuan", .patterns = {kQwen2Pattern}},
    {.name = "qwen35", .patterns = {kQwen35Pattern}},
    {.name = "gpt-4o", .patterns = {kO200kPattern}},
    {.name = "llama4", .patterns = {kO200kPattern}},
    {.name = "tekken", .patterns = {kTekkenPattern}, .ignore_merges = true, .adds_bos = true},
    {.name = "deepseek-v3", .patterns = {R"(\p{N}{1,3})", kDeepSeekCjkPattern, kDeepSeek3Pattern}},
    {.name = "deepseek-coder",
     .patterns = {R"([\r\n])", R"(\s?\p{L}+)", R"(\s?\p{P}+)", kDeepSeekHanPattern, R"(\p{N})"}},
    {.name = "deepseek-llm",
     .patterns = {R"([\r\n])", R"(\s?[\p{Lu}\p{Ll}\p{Lt}]+)", R"(\s?[!-/:-~！-／：-～‘-‟　-。]+)", R"(\s+$)",
                  kDeepSeekHanPattern, R"(\p{N}+)"}},
};

Result<PreTokenizer> make_pre_tokenizer(const Rules& rules) {
  using Behavior = PreTokenizer::Behavior;
  PreTokenizer made;
  if (rules.is_falcon) {
    PLIMSOLL_TRY_VOID(made.add_punctuation(Behavior::kContiguous));
    PLIMSOLL_TRY_VOID(made.add_byte_level(false, true));
    PLIMSOLL_TRY_VOID(made.add_digits(false));
    PLIMSOLL_TRY_VOID(made.add_split("[0-9][0-9][0-9]"));
    return made;
  }
  for (const char* pattern : rules.patterns)
    if (pattern) PLIMSOLL_TRY_VOID(made.add_split(pattern));
  if (rules.digits_first) PLIMSOLL_TRY_VOID(made.add_digits(true));
  PLIMSOLL_TRY_VOID(made.add_byte_level(false, rules.patterns[0] == nullptr));
  return made;
}

}  // namespace

Result<GgufRules> gguf_rules(std::string_view name) {
  const auto* rules = std::find_if(std::begin(kRules), std::end(kRules),
                                   [&](const Rules& each) { return each.name == name; });
  if (rules == std::end(kRules))
    return fail(ErrorCode::kUnsupported, "GGUF pre-tokenizer " + std::string(name) + " is not supported",
                "tokenizer.ggml.pre");
  GgufRules made;
  made.nfc = rules->nfc;
  made.ignore_merges = rules->ignore_merges;
  made.adds_bos = rules->adds_bos;
  PLIMSOLL_TRY(made.pre_tokenizer, make_pre_tokenizer(*rules));
  return made;
}

}  // namespace plimsoll::text
