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

Result<KvMeasurement> measure_one(const LoadOptions& options, const model::ModelSpec& spec,
                                  std::int64_t length) {
  // One more token must still be a length that the engine takes.
  constexpr std::int64_t kLongest = INT32_MAX - 1;
  if (length < 1 || length > kLongest)
    return fail(ErrorCode::kUsage, fmt::format("a sequence of {} tokens cannot be measured", length),
                "--measure", fmt::format("choose 1 to {}", kLongest));
  // The largest block up to the asked one that the length fills, so that no part of a last block is counted
  // in.
  int block_size = options.engine.block_size;
  while (length % block_size != 0) --block_size;
  PLIMSOLL_TRY(const Bytes resident,
               engine::measure_resident_kv(spec, options.engine.mode, block_size, Tokens(length)));
  return KvMeasurement{
      .tokens = Tokens(length), .block_size = block_size, .resident = resident, .kind = only_kind(spec)};
}

}  // namespace

Result<std::vector<KvMeasurement>> measure_kv(const LoadOptions& options,
                                              const std::vector<std::int64_t>& lengths) {
  PLIMSOLL_TRY(const auto artifact,
               artifact::open(options.model, {.lock = options.lock, .catalogue = options.catalogue}));
  if (auto error = artifact::first_error(artifact->findings())) return fail(std::move(*error));
  PLIMSOLL_TRY(const model::ModelSpec spec, model::read_spec(*artifact));
  std::vector<KvMeasurement> result;
  for (const std::int64_t length : lengths) {
    PLIMSOLL_TRY(const KvMeasurement one, measure_one(options, spec, length));
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
                                 {"block_size", one.block_size},
                                 {"kv_bytes_per_token", static_cast<double>(one.resident.value) /
                                                            static_cast<double>(one.tokens.value)},
                                 {"by_kind", std::move(by_kind)}}));
  }
  return Json::object({{"schema", "plimsoll.serve/1"}, {"model", model}, {"measured", std::move(list)}});
}

}  // namespace plimsoll::serve
