// SPDX-License-Identifier: Apache-2.0
#include "inspect/parameter_groups.h"

#include <algorithm>
#include <initializer_list>
#include <string>

namespace plimsoll::inspect {

using model::WeightGroup;

namespace {

bool has_any(std::string_view name, std::initializer_list<std::string_view> parts) {
  return std::any_of(parts.begin(), parts.end(),
                     [&](std::string_view part) { return name.find(part) != std::string_view::npos; });
}

bool has_segment(std::string_view name, std::string_view segment) {
  const std::string dotted = "." + std::string(name) + ".";
  return dotted.find("." + std::string(segment) + ".") != std::string::npos;
}

// Files older than the stacks have each expert by itself: "blk.0.ffn_gate.7.weight", as a pattern
// "blk.*.ffn_gate.*.weight".
bool is_lone_gguf_expert(std::string_view name) {
  for (const std::string_view part : {".ffn_gate.", ".ffn_up.", ".ffn_down."})
    if (const std::size_t at = name.find(part); name.starts_with("blk.") && at != name.npos) {
      const std::size_t digit = at + part.size();
      return digit < name.size() && (name[digit] == '*' || (name[digit] >= '0' && name[digit] <= '9'));
    }
  return false;
}

}  // namespace

WeightGroup group_of(std::string_view name) {
  if (has_any(name, {"vision", "visual", "audio", "v.blk.", "multi_modal", "mm_projector"}))
    return WeightGroup::kEncoder;
  if (has_any(name, {"per_layer", "ngram"})) return WeightGroup::kTable;
  if (has_any(name, {"embed_tokens", "token_embd", "wte.", "word_embeddings", "embed_in"}))
    return WeightGroup::kEmbedding;
  if (name.starts_with("lm_head") || name.ends_with(".lm_head.weight") || name == "output.weight" ||
      has_any(name, {"embed_out", "predictions.decoder."}) || name == "decoder.weight")
    return WeightGroup::kHead;
  if (has_any(name, {"norm", "ln_"})) return WeightGroup::kNorm;
  if (has_any(name, {"indexer"})) return WeightGroup::kIndexer;
  if (has_any(name, {"router", ".gate.", "ffn_gate_inp"})) return WeightGroup::kRouter;
  if (has_any(name, {"shared_expert", "_shexp"})) return WeightGroup::kSharedExperts;
  if (has_any(name, {"experts", "_exps"}) || is_lone_gguf_expert(name)) return WeightGroup::kExperts;
  if (has_any(name, {"linear_attn", "mamba", "ssm_", "short_conv", "shortconv", ".conv.", "mixer.in_proj",
                     "mixer.out_proj", "mixer.conv1d"}))
    return WeightGroup::kState;
  if (has_any(name, {"attn", "attention", "mixer."})) return WeightGroup::kAttention;
  if (has_any(name, {"mlp", "ffn", "feed_forward"})) return WeightGroup::kFfn;
  return WeightGroup::kOther;
}

Parts::Parts(const std::optional<model::ModelSpec>& spec, std::span<const model::TensorKind> kinds) {
  for (const model::TensorKind& kind : kinds)
    if (const std::size_t at = kind.pattern.find("ffn.experts."); at != std::string::npos)
      above_experts_.insert(kind.pattern.substr(0, at + std::string_view("ffn.").size()));
  if (!spec) return;
  for (const model::Weight& weight : spec->weights) {
    std::string name = weight.hf_name;
    for (std::size_t at = name.find("{}"); at != std::string::npos; at = name.find("{}"))
      name.replace(at, 2, "*");
    // Prediction layers share patterns with the decoder, which comes first and is meant.
    known_.try_emplace(model::name_pattern(name), Known{weight.group, weight.is_parameter});
  }
}

const Parts::Known* Parts::find_exactly(const std::string& name) const {
  const auto at = known_.find(name);
  return at == known_.end() ? nullptr : &at->second;
}

// Wrappers put a word of theirs before the language model's names or after "model."; files of a model without
// its head leave "model." out.
const Parts::Known* Parts::find(const std::string& name) const {
  if (const Known* known = find_exactly(name)) return known;
  std::string plain = name;
  for (const std::string_view word : {"language_model.", "text_model."})
    if (const std::size_t at = plain.find(word); at == 0 || at == std::string_view("model.").size())
      plain.erase(at, word.size());
  const Known* known = plain == name ? nullptr : find_exactly(plain);
  return known || plain.starts_with("model.") ? known : find_exactly("model." + plain);
}

WeightGroup Parts::group_of(const model::TensorKind& kind, const std::string& module) const {
  const Known* known = find(kind.pattern);
  if (!known) known = find(module + ".weight");
  return known ? known->group : inspect::group_of(kind.pattern);
}

bool Parts::lists(const model::TensorKind& kind) const {
  return find(kind.pattern) != nullptr;
}

bool Parts::is_buffer(const model::TensorKind& kind) const {
  const Known* known = find(kind.pattern);
  if (known) return !known->is_parameter;
  return inspect::is_buffer(kind) || is_correction_of_router(kind.pattern);
}

// DeepSeek's own names: "ffn.gate" is the router where experts stand beside it; elsewhere it may be half of a
// gated feed-forward, whose bias is a parameter like others.
bool Parts::is_correction_of_router(std::string_view name) const {
  constexpr std::string_view kBias = "ffn.gate.bias";
  if (!name.ends_with(kBias)) return false;
  name.remove_suffix(kBias.size() - std::string_view("ffn.").size());
  return above_experts_.contains(std::string(name));
}

bool is_buffer(const model::TensorKind& kind) {
  return is_buffer(kind.pattern, kind.shape);
}

bool is_buffer(std::string_view name, std::span<const std::int64_t> shape) {
  if (has_any(name, {"inv_freq", "rope_freqs", "rope_factors", "masked_bias", "rotary_emb.cos",
                     "rotary_emb.sin", "e_score_correction_bias", "position_ids", "num_batches_tracked",
                     "exp_probs_b", "self_attn.slope_rate", "self_attn.query_decay", "self_attn.key_decay",
                     "self_attn.diagonal_decay"}) ||
      name.ends_with(".expert_bias") || name.ends_with("router_bias"))
    return true;
  // A causal mask: [1, 1, n, n] under the name of a bias.
  return name.ends_with(".bias") && shape.size() == 4 && shape[0] == 1 && shape[1] == 1 &&
         shape[2] == shape[3];
}

std::int64_t count_mtp(const model::TensorKind& kind, std::int64_t num_layers, bool has_more_layers) {
  const std::string_view name = kind.pattern;
  if (has_segment(name, "mtp") || has_any(name, {"mtp_block", "mtp_layers", "nextn."})) return kind.count;
  const std::size_t star = name.find('*');
  if (!has_more_layers || star == std::string_view::npos || num_layers <= 0) return 0;
  const std::string_view before = name.substr(0, star);
  if (!before.ends_with("layers.") && !before.ends_with("blk.")) return 0;
  if (group_of(before) == WeightGroup::kEncoder) return 0;
  std::int64_t count = 0;
  for (const model::NumberRun& run : kind.runs)
    if (run.number >= num_layers) count += run.count;
  return count;
}

}  // namespace plimsoll::inspect
