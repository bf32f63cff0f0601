// SPDX-License-Identifier: Apache-2.0
#include "bench/dataset.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "base/log.h"
#include "base/mapped_file.h"
#include "bench/prompt_maker.h"

namespace plimsoll::bench {
namespace {

constexpr std::int64_t kMaxFileBytes = std::int64_t{4} << 30;
// vLLM's default for custom data sets.
constexpr std::int64_t kCustomOutputTokens = 256;

constexpr std::int64_t kMaxOutputTokens = 1'000'000'000;

std::int64_t count_tokens(const Options& options, std::string_view text, bool is_first = true) {
  if (options.tokenizer)
    return static_cast<std::int64_t>(
        options.tokenizer->encode(text, {.add_special_tokens = is_first}).size());
  return std::max<std::int64_t>(1, static_cast<std::int64_t>(text.size() / 4));
}

bool is_trace(Dataset dataset) {
  return dataset == Dataset::kTrace || dataset == Dataset::kTimedTrace || dataset == Dataset::kBurstGpt;
}

Status check(const Options& options) {
  if (options.dataset == Dataset::kRandom && !options.dataset_path.empty())
    return fail(ErrorCode::kUsage, "random prompts are read from no file", "--dataset-path",
                "say what the file is with --dataset-name: custom, sharegpt or trace");
  const auto refuse = [](std::string why, std::string flag, std::string fix = {}) {
    return fail(ErrorCode::kUsage, std::move(why), std::move(flag), std::move(fix));
  };
  const bool is_random = options.dataset == Dataset::kRandom;
  const bool has_sessions = is_random || options.dataset == Dataset::kShareGpt;
  if (!(options.trace_speed > 0 && options.trace_speed <= 1e9))
    return refuse("a trace is replayed at a speed above 0 and up to 10^9", "--trace-speed");
  if (!is_random && options.lengths)
    return refuse("only random prompts have lengths to choose", "--input-len, --output-len");
  if (!is_random && options.prefix_tokens != 0)
    return refuse("only random prompts take this prefix", "--random-prefix-len");
  if (options.prefix_tokens < 0) return refuse("a prefix has no tokens below 0", "--random-prefix-len");
  if (!has_sessions && options.num_turns)
    return refuse("this data set has no sessions", "--num-turns", "use random or sharegpt");
  if (!options.num_turns && options.turn_delay_s)
    return refuse("without sessions no turn waits", "--turn-delay", "give --num-turns too");
  if (options.ramp && !std::isinf(options.request_rate))
    return refuse("a ramp says the rate itself", "--request-rate", "leave it out, or --ramp-up-strategy");
  if (options.ramp && !(options.ramp->start_rate >= 0 && options.ramp->end_rate > 0 &&
                        options.ramp->start_rate < 1e9 && options.ramp->end_rate < 1e9))
    return refuse("a ramp runs between rates from 0 up to 10^9 and does not end at 0",
                  "--ramp-up-start-rps, --ramp-up-end-rps");
  if (options.ramp && options.ramp->shape == workload::RampShape::kExponential &&
      options.ramp->start_rate == 0)
    return refuse("an exponential ramp cannot start at 0", "--ramp-up-start-rps");
  return {};
}

/// The bounds of vLLM's is_valid_sequence. A reply's length that was asked for may be short, and so may a
/// later turn ("go on").
bool is_usable(const Options& options, const Prompt& prompt, bool is_first) {
  constexpr std::int64_t kLeast = 4;
  const bool is_long_enough =
      !is_first || (prompt.prompt_tokens >= kLeast &&
                    (options.dataset_output_tokens || prompt.max_output_tokens >= kLeast));
  return is_long_enough && !prompt.text.empty() && prompt.max_output_tokens >= 1 &&
         prompt.prompt_tokens <= 1024 && prompt.prompt_tokens + prompt.max_output_tokens <= 2048;
}

/// The turns of one conversation up to the first that is not usable.
std::vector<Prompt> session_of(const Options& options, const Json::Array& turns, workload::Random& random) {
  std::vector<Prompt> session;
  const std::int64_t most = options.num_turns ? options.num_turns->draw_count(random) : 1;
  for (std::size_t at = 0; at + 1 < turns.size() && std::ssize(session) < most; at += 2) {
    const std::string* ask = turns[at]["value"].as_string();
    const std::string* reply = turns[at + 1]["value"].as_string();
    if (!ask || !reply) break;
    const bool is_first = session.empty();
    Prompt prompt;
    prompt.text = *ask;
    prompt.prompt_tokens = count_tokens(options, *ask, is_first);
    prompt.max_output_tokens =
        options.dataset_output_tokens.value_or(count_tokens(options, *reply, is_first));
    if (!is_usable(options, prompt, is_first)) break;
    if (!is_first && options.turn_delay_s) prompt.delay_s = options.turn_delay_s->draw(random);
    session.push_back(std::move(prompt));
  }
  return session;
}

/// `count` of a file's rows, going round in them.
Result<std::vector<Prompt>> rows_of_file(const Options& options, std::int64_t count) {
  PLIMSOLL_TRY(const std::string content, read_file(options.dataset_path, kMaxFileBytes));
  auto read = options.dataset == Dataset::kCustom ? custom_prompts(options, content)
                                                  : sharegpt_prompts(options, content);
  PLIMSOLL_TRY(const std::vector<Prompt> rows, std::move(read));
  if (rows.empty())
    return fail(ErrorCode::kMalformed, "the data set holds no usable prompt", options.dataset_path);
  std::vector<Prompt> prompts;
  std::int64_t total = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t row = i % std::ssize(rows);
    Prompt prompt = rows[static_cast<std::size_t>(row)];
    if (prompt.follows >= 0) prompt.follows += i - row;
    if (prompt.prompt_tokens == 0) prompt.prompt_tokens = count_tokens(options, prompt.text);
    PLIMSOLL_TRY_VOID(check_total(total += prompt.prompt_tokens));
    prompts.push_back(std::move(prompt));
  }
  return prompts;
}

Result<std::vector<Prompt>> rows_of_trace(const Options& options, std::int64_t count) {
  workload::TraceOptions how = options.trace;
  // vLLM's data set of this name takes the rows of this model alone.
  if (options.dataset == Dataset::kBurstGpt) how.model = "GPT-4";
  PLIMSOLL_TRY(const workload::Trace trace, workload::open_trace(options.dataset_path, how));
  if (trace.num_left_out > 0)
    log_info(options.dataset_path +
             ": rows without prompt or reply, left out: " + std::to_string(trace.num_left_out));
  return trace_prompts(options, trace,
                       options.has_num_prompts ? std::optional<std::int64_t>(count) : std::nullopt);
}

Result<std::vector<Prompt>> measured_prompts(const Options& options, std::int64_t count) {
  if (options.dataset == Dataset::kRandom) return random_prompts(options, count);
  if (options.dataset == Dataset::kPrefixRepetition) return prefix_repetition_prompts(options, count);
  if (options.dataset_path.empty())
    return fail(ErrorCode::kUsage,
                "the data set \"" + std::string(to_string(options.dataset)) + "\" is read from a file",
                "--dataset-path", "name the file");
  return is_trace(options.dataset) ? rows_of_trace(options, count) : rows_of_file(options, count);
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
    if (!text || text->empty())
      return fail(ErrorCode::kMalformed, "a row of the data set has no text \"prompt\", or an empty one",
                  where, "write one object per line: {\"prompt\": \"...\", \"output_tokens\": 128}");
    Prompt prompt;
    prompt.text = *text;
    const Json& asked = row["output_tokens"];
    const std::int64_t usual = options.dataset_output_tokens.value_or(kCustomOutputTokens);
    prompt.max_output_tokens = asked.is_null() ? usual : asked.as_integer().value_or(0);
    if (prompt.max_output_tokens < 1 || prompt.max_output_tokens > kMaxOutputTokens)
      return fail(ErrorCode::kMalformed,
                  "\"output_tokens\" of a row is no whole number from 1 to 1,000,000,000", where);
    prompts.push_back(std::move(prompt));
  }
  return prompts;
}

Result<std::vector<Prompt>> sharegpt_prompts(const Options& options, std::string_view content) {
  PLIMSOLL_TRY(const Json document, parse_json(content, options.dataset_path));
  if (!document.is_array())
    return fail(ErrorCode::kMalformed, "a ShareGPT data set is an array of conversations, this is not",
                options.dataset_path);
  workload::Random random(options.seed);
  std::vector<std::vector<Prompt>> sessions;
  for (const Json& entry : document.items()) {
    std::vector<Prompt> session = session_of(options, entry["conversations"].items(), random);
    if (!session.empty()) sessions.push_back(std::move(session));
  }
  std::shuffle(sessions.begin(), sessions.end(), random);
  std::vector<Prompt> prompts;
  for (std::vector<Prompt>& session : sessions) {
    for (std::size_t turn = 0; turn < session.size(); ++turn) {
      if (turn > 0) session[turn].follows = std::ssize(prompts) - 1;
      prompts.push_back(std::move(session[turn]));
    }
  }
  return prompts;
}

Result<std::vector<Prompt>> load_prompts(const Options& options, std::int64_t count) {
  PLIMSOLL_TRY_VOID(check(options));
  const std::int64_t num_measured = std::max<std::int64_t>(count - options.num_warmups, 0);
  PLIMSOLL_TRY(std::vector<Prompt> prompts, measured_prompts(options, num_measured));
  PLIMSOLL_TRY(std::vector<Prompt> warm_ups, warm_up_prompts(options, prompts));
  std::move(warm_ups.begin(), warm_ups.end(), std::back_inserter(prompts));
  return prompts;
}

}  // namespace plimsoll::bench
