// SPDX-License-Identifier: Apache-2.0
#include "serve/sampling_fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace plimsoll::serve {
namespace {

constexpr std::size_t kMaxStopStrings = 64;
constexpr std::size_t kMaxStopBytes = 4096;

void read_stop_strings(Fields& fields, const ModelContext& context, std::vector<std::string>& stop) {
  const Json& value = fields.raw("stop");
  if (value.is_null()) return;
  const auto add = [&](const Json& item) {
    const std::string* text = item.as_string();
    if (!text) return fields.fault("stop", "stop must be a string or a list of strings");
    if (text->empty()) return fields.fault("stop", "stop cannot contain an empty string");
    if (text->size() > kMaxStopBytes)
      return fields.fault(
          "stop", fmt::format("a stop string has at most {} bytes, got {}", kMaxStopBytes, text->size()));
    stop.push_back(*text);
  };
  if (value.is_array()) {
    if (value.size() > kMaxStopStrings)
      return fields.fault("stop",
                          fmt::format("at most {} stop strings, got {}", kMaxStopStrings, value.size()));
    for (const Json& item : value.items()) add(item);
  } else {
    add(value);
  }
  if (!stop.empty() && !context.tokenizer)
    fields.fault("stop", "this model has no tokenizer: stop strings cannot be found; use stop_token_ids");
}

void read_stop_ids(Fields& fields, const ModelContext& context, GenerationRequest& request) {
  const Json& value = fields.raw("stop_token_ids");
  if (!value.is_null() && !value.is_array())
    return fields.fault("stop_token_ids", "stop_token_ids must be a list of token ids");
  for (const Json& item : value.items()) {
    const auto id = item.as_integer();
    if (!id || *id < 0 || *id >= context.vocab_size)
      return fields.fault("stop_token_ids",
                          fmt::format("stop_token_ids must hold token ids from 0 to {}, got {}",
                                      context.vocab_size - 1, dump(item)));
    request.asked_stop_ids.push_back(static_cast<TokenId>(*id));
  }
  auto& ids = request.sampling.stop_token_ids;
  ids = request.asked_stop_ids;
  // ignore_eos takes away the model's own ends and leaves those the request names, as vLLM does.
  if (fields.boolean("ignore_eos").value_or(false))
    request.sampling.ignored_stop_ids = context.stop_ids;
  else
    ids.insert(ids.end(), context.stop_ids.begin(), context.stop_ids.end());
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
}

void read_logit_bias(Fields& fields, const ModelContext& context, engine::SamplingParams& sampling) {
  const Json& value = fields.raw("logit_bias");
  if (value.is_null()) return;
  if (!value.is_object()) return fields.fault("logit_bias", "logit_bias must map token ids to numbers");
  for (const auto& [name, bias] : value.members()) {
    std::int64_t id = -1;
    const auto end = name.data() + name.size();
    const auto parsed = std::from_chars(name.data(), end, id);
    if (parsed.ec != std::errc() || parsed.ptr != end || id < 0 || id >= context.vocab_size)
      return fields.fault("logit_bias", fmt::format("logit_bias: token ids go from 0 to {}, got \"{}\"",
                                                    context.vocab_size - 1, name));
    const auto number = bias.as_double();
    if (!number || !(*number >= -100 && *number <= 100))
      return fields.fault("logit_bias",
                          fmt::format("logit_bias of token {} must be between -100 and 100", id));
    sampling.logit_bias.emplace_back(static_cast<TokenId>(id), *number);
  }
}

}  // namespace

void read_sampling(Fields& fields, const ModelContext& context, GenerationRequest& request) {
  const SamplingDefaults values = read_sampling_values(fields, context.defaults);
  auto& sampling = request.sampling;
  sampling.temperature = values.temperature;
  sampling.top_p = values.top_p;
  sampling.top_k = values.top_k;
  sampling.min_p = values.min_p;
  sampling.presence_penalty = values.presence_penalty;
  sampling.frequency_penalty = values.frequency_penalty;
  sampling.repetition_penalty = values.repetition_penalty;
  request.answer.skip_special_tokens = values.skip_special_tokens;
  sampling.typical_p =
      fields.number("typical_p", {.low = 0, .high = 1, .excludes_low = true}).value_or(sampling.typical_p);
  const auto seed = fields.integer("seed");
  if (seed && *seed != -1) sampling.seed = static_cast<std::uint64_t>(*seed);  // -1: none, as in vLLM
  sampling.min_tokens = fields.integer("min_tokens", 0).value_or(0);
  read_stop_strings(fields, context, request.stop);
  read_stop_ids(fields, context, request);
  read_logit_bias(fields, context, sampling);
  if (const auto top = fields.integer("prompt_logprobs", 0, kMaxLogprobs))
    sampling.prompt_logprobs = static_cast<int>(*top);
}

void refuse_unsupported(Fields& fields) {
  // Fields that would change the answer: ignoring them would be a lie.
  for (const char* name :
       {"suffix", "structured_outputs", "guided_json", "guided_regex", "guided_choice", "guided_grammar",
        "guided_decoding_backend", "bad_words", "allowed_token_ids", "logprob_token_ids",
        "truncate_prompt_tokens", "thinking_token_budget", "functions", "function_call", "audio",
        "chat_template", "repetition_detection", "kv_transfer_params", "web_search_options"}) {
    const Json& value = fields.raw(name);
    if (value.is_null() || (value.is_array() && value.size() == 0)) continue;
    fields.fault(name, fmt::format("{} is not supported by this server", name));
  }
  if (fields.boolean("use_beam_search").value_or(false))
    fields.fault("use_beam_search", "use_beam_search is not supported by this server");
  for (const Json& modality : fields.raw("modalities").items())
    if (!modality.is_string() || *modality.as_string() != "text")
      fields.fault("modalities", "this model answers in text only");
  const Json& format = fields.raw("response_format");
  if (format.is_null()) return;
  const std::string* type = format["type"].as_string();
  if (!type || (*type != "text" && *type != "json_object" && *type != "json_schema"))
    return fields.fault("response_format", "response_format.type must be text, json_object or json_schema");
  if (*type == "json_schema" && !format["json_schema"]["schema"].is_object())
    return fields.fault("response_format", "response_format.json_schema.schema must be an object");
  if (*type != "text")
    fields.fault("response_format", fmt::format("response_format {} is not supported by this server", *type));
}

}  // namespace plimsoll::serve
