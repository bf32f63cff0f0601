// SPDX-License-Identifier: Apache-2.0
// A plan as the document plimsoll.plan/1.
#include <algorithm>
#include <string>

#include "plan/plan.h"

namespace plimsoll::plan {
namespace {

Json bytes(const std::optional<Bytes>& amount) {
  return amount ? Json(amount->value) : Json();
}

template <class T>
Json when(bool is_known, T value) {
  return is_known ? Json(value) : Json();
}

Json text_or_null(const std::string& text) {
  return when(!text.empty(), text);
}

Json to_json(const std::vector<Lever>& levers) {
  Json list = Json::array();
  for (const Lever& lever : levers)
    list.push_back(Json::object({{"id", lever.id},
                                 {"change", lever.change},
                                 {"flag", lever.flag},
                                 {"caution", lever.caution},
                                 {"kv_tokens_before", lever.kv_tokens_before},
                                 {"kv_tokens_after", lever.kv_tokens_after},
                                 {"requests_before", lever.requests_before},
                                 {"requests_after", lever.requests_after}}));
  return list;
}

Json to_json(const std::vector<Part>& parts) {
  Json list = Json::array();
  for (const Part& part : parts) {
    Json entry = Json::object({{"part", part.part}, {"bytes", part.bytes.value}});
    if (!part.why.empty()) entry.set("why", part.why);
    list.push_back(std::move(entry));
  }
  return list;
}

Json to_json(const std::vector<Buffer>& buffers) {
  Json list = Json::array();
  for (const Buffer& buffer : buffers)
    list.push_back(
        Json::object({{"device", buffer.device}, {"kind", buffer.kind}, {"bytes", buffer.bytes.value}}));
  return list;
}

Json groups_of(const Row& row) {
  Json groups = Json::array();
  for (const memory::VllmGroup& group : row.groups)
    groups.push_back(Json::object({{"kind", memory::engine_name(group.kind)},
                                   {"layers", group.num_layers},
                                   {"block_size", group.block_size},
                                   {"page_bytes", group.page.value},
                                   {"blocks_per_request", group.blocks_per_request}}));
  if (!row.groups.empty()) return groups;
  // One group: every layer of this engine pages alike.
  if (row.bytes_per_block && row.block_size && row.num_layers > 0)
    groups.push_back(Json::object({{"kind", "FullAttentionSpec"},
                                   {"layers", row.num_layers},
                                   {"block_size", *row.block_size},
                                   {"page_bytes", row.bytes_per_block->value / row.num_layers},
                                   {"blocks_per_request", row.required_kv_cache / *row.bytes_per_block}}));
  return groups;
}

Json kind_of(const Target& target) {
  return Json::object(
      {{"name", target.name}, {"count", target.count}, {"memory_bytes", target.memory.value}});
}

/// GPUs of several kinds have no one name and size: `kinds` tells them.
Json gpu_of(const std::optional<Target>& target) {
  if (!target) return Json::object({{"name", nullptr}, {"count", nullptr}, {"memory_bytes", nullptr}});
  if (target->beside.empty()) return kind_of(*target);
  Json kinds = Json::array();
  kinds.push_back(kind_of(*target));
  for (const Target& kind : target->beside) kinds.push_back(kind_of(kind));
  return Json::object({{"name", nullptr},
                       {"count", target->num_gpus()},
                       {"memory_bytes", nullptr},
                       {"kinds", std::move(kinds)}});
}

Json to_json(const std::vector<DeviceUse>& devices) {
  Json list = Json::array();
  for (const DeviceUse& device : devices)
    list.push_back(Json::object({{"device", device.device},
                                 {"gpu", device.gpu},
                                 {"layers", device.layers},
                                 {"used_bytes", device.used.value},
                                 {"budget_bytes", bytes(device.budget)}}));
  return list;
}

Json form_of(const Row& row) {
  if (!row.form) return {};
  return Json::object(
      {{"quantization", row.form->format ? Json(memory::to_string(*row.form->format)) : Json()},
       {"full_length", row.form->is_full_length}});
}

Json engine_row(const Row& row) {
  Json command = Json::array();
  for (const std::string& word : row.command) command.push_back(word);
  const auto known = [&](Bytes amount) { return when(row.can_be, amount.value); };
  Json ranks = Json::array();
  const auto stages = static_cast<std::int64_t>(std::max<std::size_t>(1, row.stage_blocks.size()));
  if (row.can_be && stages > 1) {
    const auto places = memory::pipeline_stages(row.num_layers, static_cast<int>(stages));
    for (std::int64_t stage = 0; stage < stages; ++stage)
      ranks.push_back(
          Json::object({{"pipeline_rank", stage},
                        {"layers", row.stage_layers.empty()
                                       ? std::count(places.begin(), places.end(), static_cast<int>(stage))
                                       : row.stage_layers[static_cast<std::size_t>(stage)]},
                        {"weights_bytes", stage < static_cast<std::int64_t>(row.stage_weights.size())
                                              ? Json(row.stage_weights[static_cast<std::size_t>(stage)].value)
                                              : Json()},
                        {"bytes_per_block", row.stage_blocks[static_cast<std::size_t>(stage)].value}}));
  } else if (row.can_be)
    ranks.push_back(Json::object({{"pipeline_rank", 0},
                                  {"layers", row.num_layers},
                                  {"weights_bytes", row.weights.value},
                                  {"bytes_per_block", bytes(row.bytes_per_block)}}));
  const bool has_blocks = row.fits && row.block_size;
  return Json::object({
      {"model", row.model},
      {"title", row.title},
      {"weights_dtype", text_or_null(row.weights_dtype)},
      {"kv_cache_dtype", row.kv_cache_dtype},
      {"gpu", gpu_of(row.target)},
      {"tensor_parallel", row.tensor_parallel > 0 ? row.tensor_parallel
                          : row.target            ? row.target->count
                                                  : 1},
      {"pipeline_parallel", row.pipeline_parallel > 0 ? row.pipeline_parallel : stages},
      {"data_parallel", row.data_parallel},
      {"expert_parallel", row.is_expert_parallel},
      {"decode_context_parallel", row.decode_context_parallel},
      {"fits", row.fits},
      {"form", form_of(row)},
      {"cost", row.cost ? Json(*row.cost) : Json()},
      {"gpu_memory_utilization", row.memory_utilization ? Json(*row.memory_utilization) : Json()},
      {"budget_bytes_per_gpu", bytes(row.budget)},
      {"max_num_batched_tokens", row.batch_tokens},
      {"max_num_seqs", row.batch_sequences},
      {"weights_bytes_per_gpu", known(row.weights)},
      {"kv_cache_bytes_per_gpu", known(row.kv_cache)},
      {"kv_cache_limited_by", text_or_null(row.limited_by)},
      {"required_kv_cache_bytes_per_gpu", known(row.required_kv_cache)},
      {"kv_bytes_per_token_per_gpu", known(row.kv_bytes_per_token)},
      {"kv_bytes_per_request_per_gpu", known(row.required_kv_cache)},
      {"block_size", row.block_size},
      {"bytes_per_block", bytes(row.bytes_per_block)},
      {"num_blocks", when(has_blocks, row.num_blocks.value)},
      {"kv_tokens", when(row.fits, row.kv_tokens.value)},
      {"max_model_len", row.max_model_len.value},
      {"max_concurrency", when(row.fits, row.max_concurrency)},
      {"all_replicas",
       Json::object({{"kv_tokens", when(row.fits, row.kv_tokens.value * row.data_parallel)},
                     {"max_concurrency", when(row.fits, row.max_concurrency * row.data_parallel)}})},
      {"estimated_max_model_len",
       row.estimated_max_model_len ? Json(row.estimated_max_model_len->value) : Json()},
      {"error_bar_bytes", known(row.error_bar)},
      {"memory", to_json(row.parts)},
      {"buffers", row.buffers.empty() ? Json() : to_json(row.buffers)},
      {"devices", row.devices.empty() ? Json() : to_json(row.devices)},
      {"kv_groups", groups_of(row)},
      {"ranks", std::move(ranks)},
      {"engine_message", text_or_null(row.engine_message)},
      {"log_line", text_or_null(row.log_line)},
      {"load_time_s", nullptr},
      {"performance", nullptr},
      {"command", row.command.empty() ? Json() : std::move(command)},
      {"levers", to_json(row.levers)},
      {"findings", plimsoll::to_json(row.findings)},
  });
}

/// The keys of the document's table, over all GPUs.
Json simple_row(const Row& row) {
  return Json::object({
      {"model", row.title},
      {"weights_dtype", row.weights_dtype},
      {"gpu", Json::object({{"count", row.target ? row.target->count : 1},
                            {"memory_bytes", row.target ? Json(row.target->memory.value) : Json()}})},
      {"kv_cache_dtype", row.kv_cache_dtype},
      {"weights_bytes", row.total_weights.value},
      {"kv_cache_bytes", row.total_kv_cache.value},
      {"kv_tokens", row.kv_tokens.value},
      {"max_model_len", row.max_model_len.value},
      {"max_concurrency", row.max_concurrency},
      {"fits", row.fits},
  });
}

Json figures(const ModelFigures& model) {
  return Json::object({{"model", model.title},
                       {"parameters", model.parameters},
                       {"kv_bytes_per_token", model.kv_bytes_per_token.value},
                       {"kv_bytes_per_token_without_gqa", model.kv_bytes_per_token_without_gqa.value},
                       {"kv_bytes_of_8192_tokens", (model.kv_bytes_per_token * 8192).value},
                       {"kv_bytes_of_131072_tokens", (model.kv_bytes_per_token * 131072).value}});
}

/// Every number of the row in the document that is not exact.
void add_basis(const Row& row, bool is_simple, std::size_t index, const Json& shown, Json& map) {
  const std::string place = "/rows/" + std::to_string(index) + "/";
  for (const Basis& basis : row.basis) {
    std::string field = basis.field;
    // The simple rows speak of all GPUs at once.
    if (is_simple && field.ends_with("_per_gpu")) field.resize(field.size() - std::string("_per_gpu").size());
    if (shown.at_pointer("/" + field).is_null()) continue;
    Json entry = Json::object({{"kind", basis.kind}});
    if (!is_simple) entry.set("low", Json(basis.low)).set("high", Json(basis.high));
    entry.set("source", basis.source);
    map.set(place + field, std::move(entry));
  }
  if (is_simple) return;
  for (std::size_t i = 0; i < row.levers.size(); ++i) {
    const Lever& lever = row.levers[i];
    for (const auto& [when, kind] :
         {std::pair{"_before", lever.basis_before}, {"_after", lever.basis_after}}) {
      if (kind.empty()) continue;
      for (const char* quantity : {"kv_tokens", "requests"})
        map.set(place + "levers/" + std::to_string(i) + "/" + quantity + when,
                Json::object({{"kind", kind},
                              {"low", nullptr},
                              {"high", nullptr},
                              {"source", "as kv_tokens of the row"}}));
    }
  }
}

Json engine_json(const facts::EngineChoice& engine) {
  return Json::object({{"name", to_string(engine.name)},
                       {"version", text_or_null(engine.version)},
                       {"asked", text_or_null(engine.asked)},
                       {"default", engine.is_default}});
}

/// `rows` and `basis` of a document or of a part of one.
void set_rows(const std::vector<Row>& rows, bool is_simple, Json& document) {
  Json list = Json::array();
  Json basis = Json::object();
  for (std::size_t i = 0; i < rows.size(); ++i) {
    list.push_back(is_simple ? simple_row(rows[i]) : engine_row(rows[i]));
    add_basis(rows[i], is_simple, i, list.items()[i], basis);
  }
  document.set("rows", std::move(list));
  document.set("basis", std::move(basis));
}

Json against_json(const Against& against) {
  Json document = Json::object({{"engine", engine_json(against.engine)}});
  set_rows(against.rows, false, document);
  Json changes = Json::array();
  for (const Change& change : against.changes) {
    Json releases = Json::array();
    for (const std::string& release : change.releases) releases.push_back(release);
    changes.push_back(Json::object({{"row", static_cast<std::int64_t>(change.row)},
                                    {"field", change.field},
                                    {"before", change.before},
                                    {"after", change.after},
                                    {"difference", change.difference()},
                                    {"releases", std::move(releases)}}));
  }
  document.set("changes", std::move(changes));
  Json rules = Json::array();
  for (const auto& [release, what] : against.rules)
    rules.push_back(Json::object({{"release", release}, {"what", what}}));
  document.set("rules", std::move(rules));
  document.set("findings", plimsoll::to_json(against.engine.findings));
  return document;
}

Json rejected_json(const Rejected& layout) {
  return Json::object({{"model", layout.model},
                       {"gpu", gpu_of(layout.target)},
                       {"tensor_parallel", layout.tensor_parallel},
                       {"pipeline_parallel", layout.pipeline_parallel},
                       {"data_parallel", layout.data_parallel},
                       {"expert_parallel", layout.is_expert_parallel},
                       {"decode_context_parallel", layout.decode_context_parallel},
                       {"weights_dtype", layout.weights_dtype},
                       {"kv_cache_dtype", layout.kv_cache_dtype},
                       {"id", layout.id},
                       {"reason", layout.reason},
                       {"missing_bytes_per_gpu", bytes(layout.missing)}});
}

void set_search(const Search& search, std::size_t fitting, Json& document) {
  document.set("search",
               Json::object({{"layouts", search.num_layouts},
                             {"fitting", static_cast<std::int64_t>(fitting)},
                             {"cost_basis", search.has_prices ? "price_per_hour" : "gpu_memory_gib"}}));
  Json rejected = Json::array();
  for (const Rejected& layout : search.rejected) rejected.push_back(rejected_json(layout));
  document.set("rejected", std::move(rejected));
}

}  // namespace

Json to_json(const Plan& plan) {
  Json document = Json::object({{"schema", "plimsoll.plan/1"}});
  if (plan.is_simple) {
    document.set("accounting", "simple");
    Json models = Json::array();
    for (const ModelFigures& model : plan.models) models.push_back(figures(model));
    document.set("models", std::move(models));
  } else {
    document.set("engine", engine_json(plan.engine));
  }
  set_rows(plan.rows, plan.is_simple, document);
  if (plan.search) set_search(*plan.search, plan.rows.size(), document);
  if (plan.against) document.set("against", against_json(*plan.against));
  document.set("findings", plimsoll::to_json(plan.findings));
  return document;
}

}  // namespace plimsoll::plan
