// SPDX-License-Identifier: Apache-2.0
#include "text/tokenizer/tiktoken_file.h"

#include <charconv>
#include <span>

#include "text/tokenizer/base64.h"
#include "text/tokenizer/known_patterns.h"

namespace plimsoll::text {
namespace {

// Special tokens of a family: names with one number in them are counted on, "{}" standing for it.
struct SpecialRun {
  TokenId first_id;
  const char* name;
  int count = 1;
  int first_number = 0;
};
constexpr SpecialRun kR50kSpecials[] = {{50256, "<|endoftext|>"}};
constexpr SpecialRun kCl100kSpecials[] = {{100257, "<|endoftext|>"},
                                          {100258, "<|fim_prefix|>"},
                                          {100259, "<|fim_middle|>"},
                                          {100260, "<|fim_suffix|>"},
                                          {100276, "<|endofprompt|>"}};
constexpr SpecialRun kO200kSpecials[] = {{199999, "<|endoftext|>"}, {200018, "<|endofprompt|>"}};
constexpr SpecialRun kLlama3Specials[] = {{128000, "<|begin_of_text|>"},
                                          {128001, "<|end_of_text|>"},
                                          {128002, "<|reserved_special_token_{}|>", 2, 0},
                                          {128004, "<|finetune_right_pad_id|>"},
                                          {128005, "<|reserved_special_token_2|>"},
                                          {128006, "<|start_header_id|>"},
                                          {128007, "<|end_header_id|>"},
                                          {128008, "<|eom_id|>"},
                                          {128009, "<|eot_id|>"},
                                          {128010, "<|python_tag|>"},
                                          {128011, "<|reserved_special_token_{}|>", 245, 3}};
constexpr SpecialRun kQwenSpecials[] = {{151643, "<|endoftext|>"},
                                        {151644, "<|im_start|>"},
                                        {151645, "<|im_end|>"},
                                        {151646, "<|extra_{}|>", 205, 0}};
constexpr SpecialRun kKimiSpecials[] = {{163584, "[BOS]"},
                                        {163585, "[EOS]"},
                                        {163586, "<|im_end|>"},
                                        {163587, "<|im_user|>"},
                                        {163588, "<|im_assistant|>"},
                                        {163589, "<|reserved_token_{}|>", 1, 163589},
                                        {163590, "<|start_header_id|>"},
                                        {163591, "<|end_header_id|>"},
                                        {163592, "<|reserved_token_{}|>", 1, 163592},
                                        {163593, "[EOT]"},
                                        {163594, "<|im_system|>"},
                                        {163595, "<|tool_calls_section_begin|>"},
                                        {163596, "<|tool_calls_section_end|>"},
                                        {163597, "<|tool_call_begin|>"},
                                        {163598, "<|tool_call_argument_begin|>"},
                                        {163599, "<|tool_call_end|>"},
                                        {163600, "<|reserved_token_{}|>", 1, 163600},
                                        {163601, "<|im_middle|>"},
                                        {163602, "<|reserved_token_{}|>", 236, 163602},
                                        {163838, "[UNK]"},
                                        {163839, "[PAD]"}};

struct Family {
  std::size_t num_tokens;  // what a file is known by
  const char* name;
  const char* pattern;
  std::span<const SpecialRun> specials;
  const char* bos;
  const char* eos;
  bool is_normalized_nfc;
};
// Sources: tiktoken 0.14.0 for OpenAI's; the tokenizer code published with Llama 3.1, Qwen 1 and Kimi K2.
const Family kFamilies[] = {
    {50256, "r50k_base", kGpt2Pattern, kR50kSpecials, nullptr, "<|endoftext|>", false},
    {50280, "p50k_base", kGpt2Pattern, kR50kSpecials, nullptr, "<|endoftext|>", false},
    {100256, "cl100k_base", kCl100kPattern, kCl100kSpecials, nullptr, "<|endoftext|>", false},
    {199998, "o200k_base", kO200kPattern, kO200kSpecials, nullptr, "<|endoftext|>", false},
    {128000, "Llama 3", kLlama3Pattern, kLlama3Specials, "<|begin_of_text|>", "<|end_of_text|>", false},
    {151643, "Qwen 1", kQwen2Pattern, kQwenSpecials, nullptr, "<|endoftext|>", true},
    {163584, "Kimi K2", kKimiPattern, kKimiSpecials, nullptr, "[EOS]", false},
};

struct Line {
  std::string_view bytes;  // base64
  std::int64_t rank = 0;
};

bool read_line(std::string_view text, Line& line) {
  const std::size_t blank = text.find(' ');
  if (blank == std::string_view::npos || blank == 0) return false;
  line.bytes = text.substr(0, blank);
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data() + blank + 1, end, line.rank);
  return error == std::errc() && stop == end && line.rank >= 0;
}

Status take_family(std::string_view name, RankedVocabulary& read) {
  const Family* family = nullptr;
  for (const Family& each : kFamilies)
    if (each.num_tokens == read.entries.size()) family = &each;
  if (!family)
    return fail(ErrorCode::kUnsupported,
                "a tiktoken file of " + std::to_string(read.entries.size()) +
                    " tokens is none of those whose special tokens and splitting rules are known",
                std::string(name), "put the model's tokenizer.json beside it");
  read.pattern = family->pattern;
  read.is_normalized_nfc = family->is_normalized_nfc;
  for (const SpecialRun& run : family->specials) {
    for (int i = 0; i < run.count; ++i) {
      std::string text = run.name;
      if (const std::size_t at = text.find("{}"); at != std::string::npos)
        text.replace(at, 2, std::to_string(run.first_number + i));
      if (family->bos && text == family->bos) read.bos = run.first_id + i;
      if (text == family->eos) read.eos = run.first_id + i;
      read.specials.push_back({std::move(text), run.first_id + i});
    }
  }
  return {};
}

}  // namespace

Result<RankedVocabulary> read_tiktoken(std::string_view file, std::string_view name) {
  RankedVocabulary read;
  read.bytes.reserve(file.size());  // more than the decoded bytes: views stay valid
  std::int64_t number = 0;
  while (!file.empty()) {
    ++number;
    const std::size_t end = file.find('\n');
    std::string_view text = file.substr(0, end);
    file.remove_prefix(end == std::string_view::npos ? file.size() : end + 1);
    if (text.ends_with('\r')) text.remove_suffix(1);
    if (text.empty()) continue;
    Line line;
    const std::size_t begin = read.bytes.size();
    if (!read_line(text, line) || !append_base64(read.bytes, line.bytes) || read.bytes.size() == begin)
      return fail(ErrorCode::kMalformed, "a line must hold a token in base64 and its rank",
                  std::string(name) + ": line " + std::to_string(number));
    read.entries.push_back({{read.bytes.data() + begin, read.bytes.size() - begin}, line.rank});
  }
  PLIMSOLL_TRY_VOID(take_family(name, read));
  return read;
}

bool looks_like_tiktoken(std::string_view file) {
  Line line;
  std::string_view text = file.substr(0, file.substr(0, 4096).find('\n'));
  if (text.ends_with('\r')) text.remove_suffix(1);
  std::vector<char> bytes;
  return text.size() < 4096 && read_line(text, line) && append_base64(bytes, line.bytes);
}

}  // namespace plimsoll::text
