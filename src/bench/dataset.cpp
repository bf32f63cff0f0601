// SPDX-License-Identifier: Apache-2.0
#include "bench/dataset.h"

#include <algorithm>
#include <random>

#include "base/mapped_file.h"

namespace plimsoll::bench {
namespace {

constexpr std::int64_t kMaxFileBytes = std::int64_t{4} << 30;
// vLLM's default for custom data sets.
constexpr std::int64_t kCustomOutputTokens = 256;

std::int64_t count_tokens(const Options& options, std::string_view text) {
  if (options.tokenizer) return static_cast<std::int64_t>(options.tokenizer->encode(text).size());
  return std::max<std::int64_t>(1, static_cast<std::int64_t>(text.size() / 4));
}

}  // namespace

Result<std::vector<Prompt>> custom_prompts(const Options& options, std::string_view content) {
  std::vector<Prompt> prompts;
  std::int64_t number = 0;
  while (!content.empty()) {
    const std::size_t end = content.find('\n');
    const std::string_view line = content.substr(0, end);
    content.remove_prefix(end == content.npos ? content.size() : end + 1);
    ++number;
    if (line.find_first_not_of(" \t\r") == line.npos) continue;
    const std::string where = options.dataset_path + ": line " + std::to_string(number);
    PLIMSOLL_TRY(const Json row, parse_json(line, where));
    const std::string* text = row["prompt"].as_string();
    if (!text)
      return fail(ErrorCode::kMalformed, "a row of the data set has no text \"prompt\"", where,
                  "write one object per line: {\"prompt\": \"...\", \"output_tokens\": 128}");
    Prompt prompt;
    prompt.text = *text;
    prompt.max_output_tokens = row["output_tokens"].as_integer().value_or(
        options.dataset_output_tokens.value_or(kCustomOutputTokens));
    if (prompt.max_output_tokens < 1)
      return fail(ErrorCode::kMalformed, "\"output_tokens\" of a row is below 1", where);
    prompts.push_back(std::move(prompt));
  }
  return prompts;
}

Result<std::vector<Prompt>> sharegpt_prompts(const Options& options, std::string_view content) {
  PLIMSOLL_TRY(const Json document, parse_json(content, options.dataset_path));
  if (!document.is_array())
    return fail(ErrorCode::kMalformed, "a ShareGPT data set is an array of conversations, this is not",
                options.dataset_path);
  std::vector<Prompt> prompts;
  for (const Json& entry : document.items()) {
    const auto& turns = entry["conversations"].items();
    if (turns.size() < 2) continue;
    const std::string* ask = turns[0]["value"].as_string();
    const std::string* reply = turns[1]["value"].as_string();
    if (!ask || !reply) continue;
    Prompt prompt;
    prompt.text = *ask;
    prompt.prompt_tokens = count_tokens(options, *ask);
    prompt.max_output_tokens = options.dataset_output_tokens.value_or(count_tokens(options, *reply));
    // The bounds of vLLM's is_valid_sequence.
    const bool is_long_enough = prompt.prompt_tokens >= 4 && prompt.max_output_tokens >= 4;
    if (!is_long_enough || prompt.prompt_tokens > 1024 ||
        prompt.prompt_tokens + prompt.max_output_tokens > 2048)
      continue;
    prompts.push_back(std::move(prompt));
  }
  std::mt19937_64 random(options.seed);
  std::shuffle(prompts.begin(), prompts.end(), random);
  return prompts;
}

Result<std::vector<Prompt>> load_prompts(const Options& options, std::int64_t count) {
  if (options.dataset == Dataset::kRandom) return random_prompts(options, count);
  if (options.dataset_path.empty())
    return fail(ErrorCode::kUsage,
                "the data set \"" + std::string(to_string(options.dataset)) + "\" is read from a file",
                "--dataset-path", "name the file");
  PLIMSOLL_TRY(const std::string content, read_file(options.dataset_path, kMaxFileBytes));
  auto read = options.dataset == Dataset::kCustom ? custom_prompts(options, content)
                                                  : sharegpt_prompts(options, content);
  PLIMSOLL_TRY(const std::vector<Prompt> rows, std::move(read));
  if (rows.empty())
    return fail(ErrorCode::kMalformed, "the data set holds no usable prompt", options.dataset_path);
  std::vector<Prompt> prompts;
  for (std::int64_t i = 0; i < count; ++i) {
    Prompt prompt = rows[static_cast<std::size_t>(i) % rows.size()];
    prompt.prompt_tokens = count_tokens(options, prompt.text);
    prompts.push_back(std::move(prompt));
  }
  return prompts;
}

}  // namespace plimsoll::bench
