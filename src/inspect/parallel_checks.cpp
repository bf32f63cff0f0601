// SPDX-License-Identifier: Apache-2.0
#include "inspect/parallel_checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <initializer_list>
#include <numeric>
#include <utility>

#include "memory/quantized_weights.h"
#include "model/declarations.h"
#include "model/key_reader.h"

namespace plimsoll::inspect {
namespace {

constexpr std::array<int, 6> kSizes{1, 2, 4, 8, 16, 32};
constexpr std::int64_t kMaxCount = std::int64_t{1} << 24;  // widths and heads of any model are below

std::optional<std::int64_t> count_in(const Json& figures, std::initializer_list<std::string_view> keys) {
  for (const auto key : keys)
    if (const auto count = figures[key].as_integer(); count && *count > 0 && *count <= kMaxCount)
      return count;
  return std::nullopt;
}

/// A figure under any of the spellings that published configs use.
std::optional<std::int64_t> figure_in(const Json& figures, std::string_view key) {
  if (const auto count = count_in(figures, {key})) return count;
  for (const std::string_view other : model::other_spellings(key))
    if (const auto count = count_in(figures, {other})) return count;
  return std::nullopt;
}

void add_distinct(std::vector<std::int64_t>& values, std::int64_t value) {
  if (value > 0 && std::find(values.begin(), values.end(), value) == values.end()) values.push_back(value);
}

/// Blocks that a weight's rows and columns must be cut between; 1 where nothing is quantized.
struct Blocks {
  std::int64_t output = 1, input = 1;  // rows and columns of attention's [out, in]
  std::int64_t dense = 1, shared = 1;  // widths of dense layers and of shared experts
  std::int64_t expert = 1;             // width of routed experts
};

/// Rows and columns between which a matrix of that scheme can be cut.
struct Cut {
  std::int64_t rows = 1, columns = 1;
};

Cut cut_of(const model::QuantizationScheme* scheme) {
  const auto bounded = [](std::int64_t value) { return std::clamp<std::int64_t>(value, 1, kMaxCount); };
  if (!scheme) return {};
  if (scheme->block_rows && scheme->block_columns)
    return {bounded(*scheme->block_rows), bounded(*scheme->block_columns)};
  return {1, bounded(scheme->group_size.value_or(1))};  // scales run along the input
}

/// The scheme of the weights of one part: the first that the declaration converts. Without a list of weights,
/// and with more patterns than can be tried, the usual name of one stands for all.
const model::QuantizationScheme* scheme_in(const Report& report, const model::Quantization& declared,
                                           model::WeightGroup group, const char* usual_name) {
  const bool has_names = report.spec && report.spec->has_file_names;
  const auto schemes = has_names ? memory::DeclaredSchemes::find(*report.spec, declared) : std::nullopt;
  if (!schemes) return declared.scheme_of(usual_name);
  for (const model::Weight& weight : report.spec->weights)
    if (weight.group == group && weight.is_linear)
      if (const auto* scheme = schemes->scheme_of(weight)) return scheme;
  return nullptr;
}

Blocks blocks_of(const Subject& subject, const Report& report) {
  using model::WeightGroup;
  Blocks blocks;
  const auto declared = model::declared_quantization(subject.artifact);
  if (!declared) return blocks;
  const auto cut_in = [&](WeightGroup group, const char* usual_name) {
    return cut_of(scheme_in(report, *declared, group, usual_name));
  };
  const Cut attention = cut_in(WeightGroup::kAttention, "model.layers.0.self_attn.o_proj");
  const Cut dense = cut_in(WeightGroup::kFfn, "model.layers.0.mlp.down_proj");
  const Cut shared = cut_in(WeightGroup::kSharedExperts, "model.layers.0.mlp.shared_experts.down_proj");
  blocks.output = attention.rows;
  blocks.input = attention.columns;
  blocks.dense = std::lcm(dense.rows, dense.columns);
  blocks.shared = std::lcm(shared.rows, shared.columns);
  const auto* experts =
      scheme_in(report, *declared, WeightGroup::kExperts, "model.layers.0.mlp.experts.0.down_proj");
  const Cut cut = cut_of(experts);
  blocks.expert = std::lcm(cut.rows, cut.columns);
  // vLLM's fp8 loader cuts the experts' scales finer, down to blocks of 32, when that makes them fit.
  constexpr std::int64_t kFinest = 32;
  const std::int64_t hidden = count_in(subject.figures, {"hidden_size"}).value_or(1);
  if (experts && experts->block_rows && declared->method == "fp8" &&
      std::gcd(std::gcd(cut.rows, cut.columns), hidden) % kFinest == 0)
    blocks.expert = kFinest;
  // The fused FP4 kernels take experts in multiples of 64; Marlin's take 16.
  if (experts && experts->layout == model::Layout::kNvfp4)
    blocks.expert = std::lcm(blocks.expert, std::int64_t{64});
  return blocks;
}

class Collector {
 public:
  Collector(const Subject& subject, const Report& report)
      : figures_(subject.figures), config_(subject.artifact.config()), blocks_(blocks_of(subject, report)) {
    if (report.spec)
      read_spec(*report.spec);
    else
      read_config();
    if (subject.is_gguf()) return;  // llama.cpp splits by rows or layers; the rest are engines' keys
    read_states();
    read_vision();
  }

  std::optional<Shards> take() {
    if (q_heads_.empty()) return std::nullopt;
    for (const auto& [heads, head_dim] : q_heads_) {
      // The output projection's input is cut by heads.
      const std::int64_t whole = head_dim > 0 ? blocks_.input / std::gcd(blocks_.input, head_dim) : 1;
      add("query heads", heads, whole, false);
    }
    for (const std::int64_t heads : state_heads_) add("heads of the recurrent state", heads, 1, false);
    for (const std::int64_t width : dense_widths_) add("feed-forward width", width, blocks_.dense, false);
    for (const std::int64_t width : shared_widths_)
      add("width of the shared experts", width, blocks_.shared, false);
    for (const std::int64_t width : expert_widths_) add("expert width", width, blocks_.expert, true);
    return std::move(shards_);
  }

 private:
  void add(std::string what, std::int64_t count, std::int64_t multiple_of, bool is_expert) {
    if (count > 0) shards_.counts.push_back({std::move(what), count, multiple_of, is_expert});
  }

  void add_query_heads(std::int64_t heads, std::int64_t head_dim) {
    const std::pair entry(heads, head_dim);
    if (heads > 0 && std::find(q_heads_.begin(), q_heads_.end(), entry) == q_heads_.end())
      q_heads_.push_back(entry);
  }

  void add_kv_heads(std::int64_t heads, std::int64_t head_dim) {
    add_distinct(shards_.kv_heads, heads);
    if (head_dim > 0)
      shards_.kv_head_multiple =
          std::max(shards_.kv_head_multiple, blocks_.output / std::gcd(blocks_.output, head_dim));
  }

  void read_spec(const model::ModelSpec& spec) {
    for (const model::Layer& layer : spec.layers) {
      if (const auto* attention = std::get_if<model::Attention>(&layer.mixer)) {
        add_query_heads(attention->q_heads, attention->value_dim());
        add_kv_heads(attention->kv_heads, attention->head_dim);
      } else if (const auto* latent = std::get_if<model::Latent>(&layer.mixer)) {
        add_query_heads(latent->q_heads, latent->v_head_dim);
        shards_.has_latent = true;
      } else if (const auto* state = std::get_if<model::State>(&layer.mixer)) {
        add_state(*state);
      }
      for (const model::State& state : layer.side_states) add_state(state);
      if (layer.ffn.kind == model::FfnKind::kDense) add_distinct(dense_widths_, layer.ffn.intermediate_size);
      if (layer.ffn.kind == model::FfnKind::kMoe) {
        add_distinct(expert_widths_, layer.ffn.expert_intermediate_size);
        shards_.experts = std::max<std::int64_t>(shards_.experts, layer.ffn.experts);
        // vLLM splits shared experts like a dense layer, whatever the routed ones do.
        add_distinct(shared_widths_, layer.ffn.shared_intermediate_size);
      }
    }
  }

  // Convolutions are split by channels, which are many; only heads can stand in the way.
  void add_state(const model::State& state) { add_distinct(state_heads_, state.heads); }

  void read_config() {
    const auto heads = figure_in(figures_, "num_attention_heads");
    if (!heads) return;
    const auto head_dim = count_in(figures_, {"head_dim", "v_head_dim"});
    add_query_heads(*heads, head_dim.value_or(0));
    if (count_in(figures_, {"kv_lora_rank"}))
      shards_.has_latent = true;
    else
      add_kv_heads(figure_in(figures_, "num_key_value_heads").value_or(*heads), head_dim.value_or(0));
    shards_.experts = figure_in(figures_, "num_experts").value_or(0);
    if (shards_.experts > 0)
      add_distinct(expert_widths_, count_in(figures_, {"moe_intermediate_size", "expert_ffn_hidden_size",
                                                       "intermediate_size"})
                                       .value_or(0));
    else
      add_distinct(dense_widths_, figure_in(figures_, "intermediate_size").value_or(0));
  }

  // Heads of layers that keep a state instead of keys and values.
  void read_states() {
    add("linear-attention key heads", count_in(figures_, {"linear_num_key_heads"}).value_or(0), 1, false);
    add("linear-attention value heads", count_in(figures_, {"linear_num_value_heads"}).value_or(0), 1, false);
    add("Mamba heads", count_in(figures_, {"mamba_num_heads", "mamba_n_heads"}).value_or(0), 1, false);
  }

  void read_vision() {
    const Json& vision = config_["vision_config"];
    add("heads of the vision encoder", count_in(vision, {"num_heads", "num_attention_heads"}).value_or(0), 1,
        false);
  }

  const Json& figures_;
  const Json& config_;
  Blocks blocks_;
  Shards shards_;
  std::vector<std::pair<std::int64_t, std::int64_t>> q_heads_;  // heads, head_dim
  std::vector<std::int64_t> dense_widths_, shared_widths_, expert_widths_, state_heads_;
};

/// Why a count cannot be split over `ranks`; empty when it can.
std::string obstacle(const Shards::Count& count, std::int64_t ranks) {
  if (count.count % ranks != 0)
    return fmt::format("{} {} {} not divisible by {}", count.count, count.what,
                       count.what.ends_with("heads") || count.what.starts_with("heads") ? "are" : "is",
                       ranks);
  const std::int64_t share = count.count / ranks;
  if (ranks > 1 && share % count.multiple_of != 0)
    return fmt::format("{} of {} over {} leaves {} to a rank, no multiple of the quantization's {}",
                       count.what, count.count, ranks, share, count.multiple_of);
  return {};
}

}  // namespace

std::optional<Shards> shards_of(const Subject& subject, const Report& report) {
  return Collector(subject, report).take();
}

ParallelRow parallel_row(const Shards& shards, int tensor_parallel) {
  ParallelRow row;
  row.tensor_parallel = tensor_parallel;
  const std::int64_t ranks = tensor_parallel;
  std::string reason, expert_reason;
  const auto note = [](std::string& to, const std::string& text) {
    if (!text.empty()) to += (to.empty() ? "" : "; ") + text;
  };
  for (const Shards::Count& count : shards.counts)
    note(count.is_expert ? expert_reason : reason, obstacle(count, ranks));
  for (const std::int64_t heads : shards.kv_heads) {
    if (heads < ranks && ranks % heads == 0)
      row.kv_replicated = true;
    else if (heads % ranks != 0)
      note(reason, fmt::format("{} KV heads neither divide nor are divided by {}", heads, ranks));
    const std::int64_t held = std::max<std::int64_t>(1, heads / ranks);
    if (ranks > 1 && held % shards.kv_head_multiple != 0)
      note(reason, fmt::format("{} KV head{} on a rank are less than a block of the quantization", held,
                               held == 1 ? "" : "s"));
  }
  row.kv_replicated |= shards.has_latent && ranks > 1;
  row.is_possible = reason.empty() && expert_reason.empty();
  if (shards.experts > 0) {
    row.with_expert_parallel = reason.empty() && shards.experts >= ranks;
    if (shards.experts % ranks == 0) row.experts_per_rank = shards.experts / ranks;
    if (reason.empty() && !expert_reason.empty()) expert_reason += "; possible with --enable-expert-parallel";
  }
  note(reason, expert_reason);
  row.reason = reason;
  return row;
}

void check_parallel(const Subject& subject, Report& report) {
  const auto shards = shards_of(subject, report);
  if (!shards) return;
  for (const int size : kSizes) report.parallel.push_back(parallel_row(*shards, size));
}

Json parallel_json(const Report& report) {
  if (report.parallel.empty()) return {};
  Json rows = Json::array();
  for (const ParallelRow& row : report.parallel)
    rows.push_back(Json::object({{"tensor_parallel", row.tensor_parallel},
                                 {"possible", row.is_possible},
                                 {"reason", row.reason.empty() ? Json() : Json(row.reason)},
                                 {"kv_replicated", row.kv_replicated},
                                 {"with_expert_parallel", row.with_expert_parallel},
                                 {"experts_per_rank", row.experts_per_rank}}));
  return rows;
}

}  // namespace plimsoll::inspect
