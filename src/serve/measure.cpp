// SPDX-License-Identifier: Apache-2.0
#include "serve/measure.h"

#include <fmt/format.h>

namespace plimsoll::serve {
namespace {

Result<KvMeasurement> measure_one(const LoadOptions& options, const model::ModelSpec& spec,
                                  std::int64_t length) {
  // One more token must still be a length that the engine takes.
  constexpr std::int64_t kLongest = INT32_MAX - 1;
  if (length < 1 || length > kLongest)
    return fail(ErrorCode::kUsage, fmt::format("a sequence of {} tokens cannot be measured", length),
                "--measure", fmt::format("choose 1 to {}", kLongest));
  PLIMSOLL_TRY(auto report, engine::measure_resident_kv(spec, options.engine, Tokens(length)));
  return KvMeasurement{
      .tokens = Tokens(length), .block_size = report.block_size, .kinds = std::move(report.kinds)};
}

}  // namespace

Bytes KvMeasurement::resident() const {
  Bytes sum;
  for (const auto& kind : kinds) sum += kind.bytes;
  return sum;
}

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
    Json by_kind = Json::array();
    for (const auto& kind : one.kinds)
      by_kind.push_back(
          Json::object({{"kind", kind.kind}, {"window", kind.window_tokens}, {"bytes", kind.bytes.value}}));
    list.push_back(Json::object({{"tokens", one.tokens.value},
                                 {"kv_cache_bytes", one.resident().value},
                                 {"block_size", one.block_size},
                                 {"kv_bytes_per_token", static_cast<double>(one.resident().value) /
                                                            static_cast<double>(one.tokens.value)},
                                 {"by_kind", std::move(by_kind)}}));
  }
  return Json::object({{"schema", "plimsoll.serve/1"}, {"model", model}, {"measured", std::move(list)}});
}

}  // namespace plimsoll::serve
