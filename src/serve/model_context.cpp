// SPDX-License-Identifier: Apache-2.0
#include "serve/model_context.h"

#include <fmt/format.h>

#include <algorithm>

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

SamplingDefaults read_sampling_values(Fields& fields, SamplingDefaults values) {
  const auto read = [&](const char* name, const NumberRange& range, double& value) {
    value = fields.number(name, range).value_or(value);
  };
  read("temperature", {.low = 0, .high = 2}, values.temperature);
  read("top_p", {.low = 0, .high = 1, .excludes_low = true}, values.top_p);
  values.top_k = static_cast<int>(fields.integer("top_k", -1, INT32_MAX).value_or(values.top_k));
  read("min_p", {.low = 0, .high = 1}, values.min_p);
  read("presence_penalty", {.low = -2, .high = 2}, values.presence_penalty);
  read("frequency_penalty", {.low = -2, .high = 2}, values.frequency_penalty);
  read("repetition_penalty", {.low = 0, .excludes_low = true}, values.repetition_penalty);
  values.skip_special_tokens = fields.boolean("skip_special_tokens").value_or(values.skip_special_tokens);
  return values;
}

Result<SamplingDefaults> read_sampling_defaults(const artifact::Artifact& artifact,
                                                const std::string& source) {
  if (source == "vllm") return SamplingDefaults{};
  Json config;
  if (source == "auto") {
    config = artifact.json_file("generation_config.json");
  } else {
    PLIMSOLL_TRY(config, read_json_file(source + "/generation_config.json"));
  }
  if (config["top_p"].as_double() == 0.0) config.set("top_p", nullptr);  // older files mean "off" by it
  Fields fields(config);
  SamplingDefaults defaults = read_sampling_values(fields, {});
  defaults.max_new_tokens = fields.integer("max_new_tokens", 1);
  if (source != "auto") {
    defaults.caps_max_tokens = true;
    add_stop_ids(config["eos_token_id"], defaults.stop_ids);
  }
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
