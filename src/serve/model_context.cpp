// SPDX-License-Identifier: Apache-2.0
#include "serve/model_context.h"

#include <fmt/format.h>

#include <algorithm>

#include "serve/fields.h"

namespace plimsoll::serve {
namespace {

void add_stop_ids(const Json& value, std::vector<TokenId>& ids) {
  const auto add = [&](const Json& item) {
    const auto id = item.as_integer();
    if (!id || *id < 0 || *id > INT32_MAX) return;
    const auto token = static_cast<TokenId>(*id);
    if (std::find(ids.begin(), ids.end(), token) == ids.end()) ids.push_back(token);
  };
  if (value.is_array())
    for (const Json& item : value.items()) add(item);
  else
    add(value);
}

}  // namespace

Result<SamplingDefaults> read_sampling_defaults(const artifact::Artifact& artifact,
                                                const std::string& source) {
  SamplingDefaults defaults;
  if (source == "vllm") return defaults;
  Json config;
  if (source == "auto") {
    config = artifact.json_file("generation_config.json");
  } else {
    PLIMSOLL_TRY(config, read_json_file(source + "/generation_config.json"));
  }
  Fields fields(config);
  defaults.temperature = fields.number("temperature", {.low = 0}).value_or(defaults.temperature);
  defaults.top_p = fields.number("top_p", {.low = 0, .high = 1}).value_or(defaults.top_p);
  if (defaults.top_p == 0.0) defaults.top_p = 1.0;
  defaults.top_k = static_cast<int>(fields.integer("top_k", -1, INT32_MAX).value_or(defaults.top_k));
  defaults.min_p = fields.number("min_p", {.low = 0, .high = 1}).value_or(defaults.min_p);
  defaults.repetition_penalty = fields.number("repetition_penalty", {.low = 0, .excludes_low = true})
                                    .value_or(defaults.repetition_penalty);
  defaults.max_new_tokens = fields.integer("max_new_tokens", 1);
  if (fields.error())
    return fail(ErrorCode::kMalformed, "reading the author's sampling defaults: " + fields.error()->message,
                "generation_config.json: /" + fields.error()->param.value_or(""),
                "correct the file, or serve with --generation-config vllm");
  return defaults;
}

std::vector<TokenId> read_stop_ids(const artifact::Artifact& artifact, const text::Tokenizer* tokenizer) {
  if (tokenizer) return tokenizer->stop_ids();
  std::vector<TokenId> ids;
  const Json& config = artifact.config();
  for (const char* key : {"eos_token_id", "tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id"})
    add_stop_ids(config[key], ids);
  add_stop_ids(artifact.json_file("generation_config.json")["eos_token_id"], ids);
  return ids;
}

std::optional<ApiError> check_model_name(const ModelContext& context, const std::string& name) {
  if (name.empty() || std::find(context.names.begin(), context.names.end(), name) != context.names.end())
    return std::nullopt;
  ApiError error;
  error.status = 404;
  error.type = "not_found_error";
  error.message = fmt::format("The model `{}` does not exist", name);
  error.param = "model";
  error.code = "model_not_found";
  return error;
}

}  // namespace plimsoll::serve
