// SPDX-License-Identifier: Apache-2.0
#include "serve/measure.h"

#include <fmt/format.h>

namespace plimsoll::serve {
namespace {

/// The pool tells one sum, so a kind can be named only when it is the only one.
std::optional<std::string> only_kind(const model::ModelSpec& spec) {
  std::optional<std::string> kind;
  for (const auto& layer : spec.layers) {
    const auto* attention = std::get_if<model::Attention>(&layer.mixer);
    if (!attention) return std::nullopt;
    const char* name = attention->window_tokens ? "sliding" : "full";
    if (kind && *kind != name) return std::nullopt;
    kind = name;
  }
  return kind;
}

Result<KvMeasurement> measure_one(const LoadOptions& options, std::int64_t length) {
  // One more token must still be a length that the engine takes.
  constexpr std::int64_t kLongest = INT32_MAX - 1;
  if (length < 1 || length > kLongest)
    return fail(ErrorCode::kUsage, fmt::format("a sequence of {} tokens cannot be measured", length),
                "--measure", fmt::format("choose 1 to {}", kLongest));
  LoadOptions asked = options;
  asked.engine.enable_prefix_caching = false;
  asked.engine.max_num_seqs = 1;
  asked.engine.max_model_len = length + 1;  // the engine wants room for one answer token
  asked.engine.num_blocks = (length + asked.engine.block_size) / asked.engine.block_size;
  PLIMSOLL_TRY(const LoadedModel model, load_model(asked));
  engine::Engine& engine = *model.engine;
  const Bytes before = engine.resident_kv_bytes();
  engine::SamplingParams sampling;
  sampling.max_tokens = 1;  // chosen from the prompt's logits; its own keys and values are never stored
  sampling.temperature = 0;
  std::vector<TokenId> prompt(static_cast<std::size_t>(length));
  for (std::size_t i = 0; i < prompt.size(); ++i)
    prompt[i] = static_cast<TokenId>(i % static_cast<std::size_t>(engine.vocab_size()));
  PLIMSOLL_TRY(const engine::RequestId id, engine.add(std::move(prompt), sampling));
  while (engine.has_work())
    for (const engine::Output& output : engine.step())
      if (output.request == id && output.finish == engine::FinishReason::kError)
        return fail(ErrorCode::kMalformed, output.error, options.model);
  return KvMeasurement{.tokens = Tokens(length),
                       .resident = engine.resident_kv_bytes() - before,
                       .bytes_per_token = engine.memory().kv_bytes_per_token,
                       .kind = only_kind(model.spec)};
}

}  // namespace

Result<std::vector<KvMeasurement>> measure_kv(const LoadOptions& options,
                                              const std::vector<std::int64_t>& lengths) {
  std::vector<KvMeasurement> result;
  for (const std::int64_t length : lengths) {
    PLIMSOLL_TRY(const KvMeasurement one, measure_one(options, length));
    result.push_back(one);
  }
  return result;
}

Json to_json(const std::vector<KvMeasurement>& measurements, const std::string& model) {
  Json list = Json::array();
  for (const KvMeasurement& one : measurements) {
    Json by_kind;
    if (one.kind) by_kind.push_back(Json::object({{"kind", *one.kind}, {"bytes", one.resident.value}}));
    list.push_back(Json::object({{"tokens", one.tokens.value},
                                 {"kv_cache_bytes", one.resident.value},
                                 {"kv_bytes_per_token", one.bytes_per_token.value},
                                 {"by_kind", std::move(by_kind)}}));
  }
  return Json::object({{"schema", "plimsoll.serve/1"}, {"model", model}, {"measured", std::move(list)}});
}

}  // namespace plimsoll::serve
