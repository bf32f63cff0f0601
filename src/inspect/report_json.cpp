// SPDX-License-Identifier: Apache-2.0
// The document plimsoll.inspect/1.
#include <algorithm>
#include <string>
#include <utility>

#include "inspect/context_checks.h"
#include "inspect/inspect.h"
#include "inspect/parallel_checks.h"

namespace plimsoll::inspect {
namespace {

Json bytes_json(const std::optional<Bytes>& bytes) {
  return bytes ? Json(bytes->value) : Json();
}

Json model_json(const Report& report) {
  return Json::object({{"source", report.source},
                       {"commit", report.commit.empty() ? Json() : Json(report.commit)},
                       {"architecture", report.architecture},
                       {"model_type", report.model_type},
                       {"license", report.license_terms},
                       {"card_claims", report.card_claims}});
}

Json files_json(const Report& report) {
  Json list = Json::array();
  for (const auto& file : report.files)
    list.push_back(Json::object({{"path", file.path},
                                 {"bytes", file.bytes.value},
                                 {"role", to_string(file.role)},
                                 {"sha256", file.sha256.empty() ? Json() : Json(file.sha256)}}));
  return list;
}

Json parameters_json(const Parameters& parameters) {
  Json groups = Json::array(), differences = Json::array();
  for (const Group& group : parameters.by_group)
    groups.push_back(
        Json::object({{"group", model::to_string(group.group)}, {"parameters", group.parameters}}));
  for (const Difference& difference : parameters.differences) {
    Json row = Json::object({{"cause", to_string(difference.cause)}, {"parameters", difference.parameters}});
    if (!difference.detail.empty()) row.set("detail", difference.detail);
    differences.push_back(std::move(row));
  }
  return Json::object({{"total", parameters.total},
                       {"active", parameters.active},
                       {"active_without_embedding", parameters.active_without_embedding},
                       {"mtp", parameters.mtp},
                       {"hub_total", parameters.hub_total},
                       {"by_group", std::move(groups)},
                       {"differences", std::move(differences)}});
}

Json weights_json(const Weights& weights) {
  Json by_dtype = Json::array(), other = Json::array();
  for (const StoredAs& row : weights.by_dtype)
    by_dtype.push_back(Json::object({{"dtype", name(row.dtype)},
                                     {"parameters", row.parameters},
                                     {"num_tensors", row.num_tensors},
                                     {"bytes", row.bytes.value}}));
  for (const StoredAs& row : weights.if_stored_as)
    other.push_back(Json::object({{"dtype", name(row.dtype)}, {"bytes", row.bytes.value}}));
  return Json::object({{"bytes", bytes_json(weights.bytes)},
                       {"file_bytes", bytes_json(weights.file_bytes)},
                       {"num_tensors", weights.num_tensors},
                       {"num_files", weights.num_files},
                       {"index_total_size_bytes", weights.index_total_size_bytes},
                       {"by_dtype", std::move(by_dtype)},
                       {"quantization", weights.quantization},
                       {"if_stored_as", std::move(other)}});
}

// The fields of a run that depend on the layer's kind.
void set_mixer(Json& row, const model::Attention& attention) {
  row.set("q_heads", attention.q_heads);
  row.set("kv_heads", attention.kv_heads);
  row.set("head_dim", attention.head_dim);
  row.set("window", attention.window_tokens ? attention.window_tokens : attention.chunk_tokens);
  if (attention.indexer) row.set("indexer", true);
}
void set_mixer(Json& row, const model::Latent& latent) {
  row.set("q_heads", latent.q_heads);
  row.set("kv_heads", 1);
  row.set("head_dim", latent.width());
  row.set("window", latent.window_tokens);
}
void set_mixer(Json&, const model::State&) {}
void set_mixer(Json&, const model::NoMixer&) {}
void set_mixer(Json&, const model::TwoSided&) {}

std::string_view to_string(model::FfnKind kind) {
  switch (kind) {
    case model::FfnKind::kDense:
      return "dense";
    case model::FfnKind::kMoe:
      return "moe";
    case model::FfnKind::kNone:
      return "none";
  }
  return "none";
}

Json layers_json(const Report& report) {
  if (!report.spec) return {};
  Json list = Json::array();
  for (const LayerRun& run : report.layers) {
    Json row = Json::object({{"first", run.first},
                             {"count", run.count},
                             {"kind", model::kind_of(run.layer.mixer)},
                             {"ffn", to_string(run.layer.ffn.kind)},
                             {"kv_heads", nullptr},
                             {"q_heads", nullptr},
                             {"head_dim", nullptr},
                             {"window", nullptr},
                             {"state_bytes", nullptr},
                             {"kv_source", nullptr},
                             {"experts", nullptr}});
    std::visit([&](const auto& mixer) { set_mixer(row, mixer); }, run.layer.mixer);
    if (run.state_bytes.value > 0) row.set("state_bytes", run.state_bytes.value);
    row.set("kv_source", run.layer.kv_source);
    const model::Ffn& ffn = run.layer.ffn;
    if (ffn.kind == model::FfnKind::kMoe)
      row.set("experts", Json::object({{"total", ffn.experts},
                                       {"per_token", ffn.experts_per_token},
                                       {"shared", ffn.shared_experts}}));
    list.push_back(std::move(row));
  }
  return list;
}

Json kv_cache_json(const std::optional<KvCache>& cache) {
  if (!cache)
    return Json::object({{"bytes_per_token", nullptr},
                         {"growing_bytes_per_token", nullptr},
                         {"indexer_bytes_per_token", nullptr},
                         {"state_bytes_per_sequence", nullptr},
                         {"sequence_tokens", nullptr},
                         {"bytes_per_sequence", nullptr},
                         {"dtype", nullptr},
                         {"without_gqa_bytes_per_token", nullptr}});
  const bool has_length = cache->sequence_tokens > 0;
  return Json::object({{"bytes_per_token", cache->bytes_per_token.value},
                       {"growing_bytes_per_token", cache->growing_bytes_per_token.value},
                       {"indexer_bytes_per_token", cache->indexer_bytes_per_token.value},
                       {"state_bytes_per_sequence", cache->state_bytes_per_sequence.value},
                       {"sequence_tokens", has_length ? Json(cache->sequence_tokens) : Json()},
                       {"bytes_per_sequence", has_length ? bytes_json(cache->bytes_per_sequence) : Json()},
                       {"dtype", name(cache->dtype)},
                       {"without_gqa_bytes_per_token", cache->without_gqa_bytes_per_token.value}});
}

std::string_view to_string(model::RopeKind kind) {
  switch (kind) {
    case model::RopeKind::kNone:
      return "none";
    case model::RopeKind::kDefault:
      return "default";
    case model::RopeKind::kLinear:
      return "linear";
    case model::RopeKind::kDynamic:
      return "dynamic";
    case model::RopeKind::kLlama3:
      return "llama3";
    case model::RopeKind::kYarn:
      return "yarn";
    case model::RopeKind::kLongrope:
      return "longrope";
  }
  return "none";
}

Json context_and_rope_json(const Report& report) {
  Json context = context_json(report.context);
  Json rope;
  if (report.spec)
    rope = Json::object({{"type", to_string(report.spec->rope.kind)},
                         {"theta", report.spec->rope.theta},
                         {"factor", report.spec->rope.factor}});
  context.set("rope", std::move(rope));
  return context;
}

Json workload_json(const std::optional<memory::Workload>& workload) {
  if (!workload) return {};
  return Json::object({{"input_tokens", workload->input.value},
                       {"output_tokens", workload->output.value},
                       {"concurrency", workload->concurrency},
                       {"rate", workload->rate},
                       {"live_tokens", workload->live_tokens().value}});
}

Json basis_json(const Report& report) {
  Json basis = Json::object();
  const auto add = [&](const std::string& pointer, const std::string& source, Json low = {}, Json high = {}) {
    basis.set(
        pointer,
        Json::object(
            {{"kind", "formula"}, {"low", std::move(low)}, {"high", std::move(high)}, {"source", source}}));
  };
  if (report.weights.bytes && report.weights.is_dtype_assumed) {
    basis.set("/weights/bytes",
              Json::object({{"kind", "assumed"},
                            {"low", report.weights.bytes->value},
                            {"high", bytes_json(report.weights.most_bytes)},
                            {"source", "every parameter in 16 bits: no dtype is declared"}}));
  } else if (report.weights.bytes && !report.weights.is_exact) {
    const std::int64_t bytes = report.weights.bytes->value, within = report.weights.bytes_within.value;
    add("/weights/bytes", "every tensor in the dtype or layout that the config declares",
        within > 0 ? Json(bytes - within) : Json(), within > 0 ? Json(bytes + within) : Json());
  }
  if (report.parameters.hub_total && !report.parameters.hub_total_source.empty())
    add("/parameters/hub_total", report.parameters.hub_total_source);
  for (std::size_t i = 0; i < report.weights.if_stored_as.size(); ++i)
    add("/weights/if_stored_as/" + std::to_string(i) + "/bytes", "every parameter stored in this type");
  return basis;
}

}  // namespace

Json to_json(const Report& report) {
  const FindingLevel worst = worst_level(report.findings);
  Json document = Json::object({{"schema", "plimsoll.inspect/1"},
                                {"model", model_json(report)},
                                {"files", files_json(report)},
                                {"parameters", parameters_json(report.parameters)},
                                {"weights", weights_json(report.weights)},
                                {"layers", layers_json(report)},
                                {"kv_cache", kv_cache_json(report.kv_cache)},
                                {"context", context_and_rope_json(report)},
                                {"workload", workload_json(report.workload)},
                                {"tokenizer", report.tokenizer},
                                {"multimodal", report.multimodal},
                                {"generation_defaults", report.generation_defaults},
                                {"parallel", parallel_json(report)},
                                {"support", report.support},
                                {"environment", report.environment},
                                {"findings", plimsoll::to_json(report.findings)},
                                {"verdict", worst == FindingLevel::kInfo ? "ok" : plimsoll::to_string(worst)},
                                {"values_scanned", report.values_scanned},
                                {"basis", basis_json(report)}});
  if (!report.tensors.is_null()) document.set("tensors", report.tensors);
  if (!report.tensor.is_null()) document.set("tensor", report.tensor);
  return document;
}

}  // namespace plimsoll::inspect
