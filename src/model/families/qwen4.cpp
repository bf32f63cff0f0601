// SPDX-License-Identifier: Apache-2.0
// Qwen 3.8 (model_type qwen4_exp): gated delta nets and sparse attention over residual streams
// (hyper-connections), mixtures everywhere, and hashed n-gram embeddings that enter chosen layers. Source:
// transformers' Qwen4ExpTextConfig; prediction layers as the published files hold them.
#include <algorithm>
#include <string>
#include <utility>

#include "model/families/families.h"
#include "model/families/states.h"

namespace plimsoll::model {
namespace {

using Group = WeightGroup;
constexpr MoeStyle kMoeStyle{.shared = "mlp.shared_expert.", .has_shared_gate = true};
constexpr std::int64_t kMaxNgramHeads = 1'024;  // of all layers; published: 16

// Embeddings of the last tokens' n-grams; every head has a table of its own, as long as a prime.
struct Ngrams {
  std::vector<bool> layers;  // that take them in
  std::int64_t size = 3, heads = 16, base = 20'000'000, divisor = 128, shards = 512;
  std::int64_t width = 0, kernel = 4;
  std::int64_t reach() const { return (kernel - 1) * size; }  // tokens back that the dilated kernel sees
};

struct Qwen4 {
  ModelSpec spec;
  DeltaNet net;
  Ngrams ngrams;
  std::int64_t streams = 4, rank = 320;
  std::int64_t wide() const { return streams * spec.hidden_size; }
};

// Tables are shorter than kMaxVocab plus a few gaps between primes, so 32 bits hold all of it.
bool is_prime(std::uint32_t number) {
  if (number < 4) return number > 1;
  if (number % 2 == 0) return false;
  for (std::uint32_t divisor = 3; divisor * divisor <= number; divisor += 2)
    if (number % divisor == 0) return false;
  return true;
}

// Rows of the next layer's table: as many further primes as it has heads, padded. `prime` goes along.
std::int64_t table_rows(const Ngrams& ngrams, std::int64_t& prime) {
  std::int64_t rows = 0;
  for (std::int64_t head = 0; head < ngrams.heads; ++head) {
    do ++prime;
    while (!is_prime(static_cast<std::uint32_t>(prime)));
    rows += prime;
  }
  return (rows + ngrams.divisor - 1) / ngrams.divisor * ngrams.divisor;
}

Ngrams read_ngrams(KeyReader& keys, const ModelSpec& spec) {
  Ngrams ngrams;
  ngrams.layers = keys.named_layers("ple_layer_ids", spec.layers.size(), 1);
  ngrams.size = keys.integer("ngram_size", 2, 64, 3);
  ngrams.heads = (ngrams.size - 1) * keys.integer("heads_per_ngram", 1, 64, 8);
  ngrams.base = keys.integer("ngram_vocab_size_base", 2, kMaxVocab, 20'000'000);
  ngrams.divisor = keys.integer("make_ngram_vocab_size_divisible_by", 1, kMaxVocab, 128);
  ngrams.shards = keys.integer("split_ngram_parts", 1, 1 << 20, 512);
  ngrams.width = keys.integer("ple_embed_dim", 1, kMaxWidth, spec.hidden_size);
  ngrams.kernel = keys.integer("ple_conv_kernel_size", 1, kMaxKernel, 4);
  if (ngrams.heads * std::count(ngrams.layers.begin(), ngrams.layers.end(), true) > kMaxNgramHeads ||
      ngrams.width % ngrams.heads != 0)
    keys.add_error(ErrorCode::kMalformed, "heads_per_ngram",
                   "reading the model: the n-gram heads are too many, or don't divide ple_embed_dim");
  return ngrams;
}

std::optional<Indexer> read_block_indexer(KeyReader& keys) {
  if (!keys.has("indexer_n_heads")) return std::nullopt;
  return Indexer{.heads = keys.count("indexer_n_heads", kMaxHeads),
                 .head_dim = keys.count("indexer_head_dim", kMaxHeadDim),
                 .selected_tokens = keys.count("indexer_budget", 1 << 30),
                 .tokens_per_key = keys.count("indexer_compress_ratio", 1 << 16)};
}

// Keys that do not fill a block yet wait in a ring; with images each has three positions beside it.
State ring_of(const Indexer& indexer, bool has_images) {
  return {.kind = StateKind::kIndexRing,
          .recurrent_elements = has_images ? std::int64_t{indexer.tokens_per_key} * 3 : 0,
          .convolution_elements = std::int64_t{indexer.tokens_per_key} * indexer.head_dim,
          .recurrent_dtype = DType::kI64};
}

void write_streams(SpecWriter& writer, const Qwen4& model, const std::string& name, bool injects) {
  writer.add(Group::kOther, name + ".hc_norm.weight", {model.wide()});
  writer.linear(Group::kOther, name + ".input_mix_weight_down", model.rank, model.wide());
  writer.linear(Group::kOther, name + ".input_mix_weight_up", model.wide(), model.rank);
  if (injects) writer.linear(Group::kOther, name + ".block_inject_weight", model.streams, model.wide());
}

void write_indexer(SpecWriter& writer, const Indexer& indexer) {
  writer.linear(Group::kIndexer, "self_attn.indexer.index_qk_proj",
                (std::int64_t{indexer.heads} + 1) * indexer.head_dim, writer.width());
  for (const char* name : {"self_attn.indexer.q_layernorm.weight", "self_attn.indexer.k_layernorm.weight"})
    writer.add(Group::kIndexer, name, {indexer.head_dim});
}

// Constants of the hash: integers, no parameters.
void write_constant(SpecWriter& writer, std::string_view name, std::int64_t count) {
  Weight& weight = writer.add(Group::kOther, name, {count});
  weight.is_parameter = false;
  weight.dtype = DType::kI64;
}

void write_ngrams(SpecWriter& writer, const Qwen4& model, std::int64_t rows) {
  const Ngrams& ngrams = model.ngrams;
  for (const char* name : {"ple.norm_key.weight", "ple.norm_query.weight", "ple.norm_conv.weight"})
    writer.add(Group::kOther, name, {model.wide()});
  writer.linear(Group::kOther, "ple.key_proj", model.wide(), ngrams.width);
  writer.linear(Group::kOther, "ple.value_proj", writer.width(), ngrams.width);
  writer.add(Group::kOther, "ple.conv1d.weight", {model.wide(), 1, ngrams.kernel});
  const std::string at = "ple.ple_embedding.";
  write_constant(writer, at + "layer_multipliers", ngrams.size);
  write_constant(writer, at + "ngram_heads_vocab_sizes", ngrams.heads);
  write_constant(writer, at + "ngram_heads_offsets", ngrams.heads);
  const std::int64_t row = ngrams.width / ngrams.heads;
  if (rows % ngrams.shards == 0) {
    Weight& table =
        writer.add(Group::kTable, at + "ngram_embedding.shard_{}.weight", {rows / ngrams.shards, row});
    table.copies = static_cast<int>(ngrams.shards);
  } else {
    writer.add(Group::kTable, at + "ngram_embedding.weight", {rows, row});
  }
}

void write_layer(SpecWriter& writer, const Qwen4& model, const Layer& layer) {
  write_streams(writer, model, "attn_hyper_connection", true);
  if (const auto* attention = std::get_if<Attention>(&layer.mixer)) {
    write_attention(writer, *attention);
    if (attention->indexer) write_indexer(writer, *attention->indexer);
  } else {
    write_delta_net(writer, model.net, false);
  }
  write_streams(writer, model, "mlp_hyper_connection", true);
  write_any_ffn(writer, layer.ffn, kMoeStyle);
}

void write_mtp(KeyReader& keys, const Layer& layer, Qwen4& model) {
  const auto count = static_cast<int>(keys.integer("num_nextn_predict_layers", 0, kMaxMtpLayers, 0));
  if (count == 0) return;
  SpecWriter writer(model.spec);
  writer.override_group(Group::kMtp);
  writer.enter("mtp.");
  const std::int64_t width = writer.width();
  writer.norm("pre_fc_norm_embedding", width);
  writer.norm("pre_fc_norm_hidden", model.wide());
  writer.linear(Group::kMtp, "fc_embedding", width, width);
  writer.linear(Group::kMtp, "fc_hidden", width, width);
  if (keys.flag("mtp_use_dedicated_embeddings", false))
    writer.add(Group::kMtp, "embed_tokens.weight", {model.spec.vocab_size, width});
  for (int i = 0; i < count; ++i) {
    writer.enter("mtp.layers." + std::to_string(i) + ".", static_cast<int>(model.spec.layers.size()) + i);
    write_layer(writer, model, layer);
    model.spec.mtp_layers.push_back(layer);
  }
  writer.enter("mtp.");
  write_streams(writer, model, "hyper_connection_mixer", false);
}

void read_layers(KeyReader& keys, Qwen4& model, Layer& attending) {
  ModelSpec& spec = model.spec;
  for_each_attention(spec, [&](Attention& attention, std::size_t) {
    attention.has_qk_norm = attention.has_output_gate = true;
    attention.indexer = read_block_indexer(keys);
  });
  Ffn moe = read_moe(keys, spec.layers.front().ffn, {512, 10, 512});
  moe.shared_experts = 1;
  moe.shared_intermediate_size = keys.count("shared_expert_intermediate_size", kMaxWidth, 512);
  for (Layer& layer : spec.layers) {
    layer.ffn = moe;
    if (const auto& indexer = std::get<Attention>(layer.mixer).indexer)
      layer.side_states.push_back(ring_of(*indexer, keys.is_nested()));
  }
  attending = spec.layers.front();
  set_state_layers(keys, state_of(model.net), spec);
  for (std::size_t i = 0; i < spec.layers.size(); ++i) {
    Layer& layer = spec.layers[i];
    if (std::holds_alternative<State>(layer.mixer)) layer.side_states.clear();
    if (model.ngrams.layers[i])
      layer.side_states.push_back({.kind = StateKind::kShortConv,
                                   .convolution_elements = model.wide() * model.ngrams.reach(),
                                   .kernel = static_cast<int>(model.ngrams.reach()) + 1,
                                   .is_copied = true});
  }
}

}  // namespace

ModelSpec qwen4_exp_from_config(KeyReader& keys) {
  Qwen4 model{read_config_decoder(keys, {.context_tokens = 32'768,
                                         .head_dim = 256,
                                         .kv_heads = 2,
                                         .hidden_size = 2048,
                                         .num_layers = 40,
                                         .q_heads = 16,
                                         .vocab_size = 248'320,
                                         .has_class_defaults = true}),
              read_delta_net(keys),
              {}};
  ModelSpec& spec = model.spec;
  read_attention_bias(keys, spec);
  model.streams = keys.integer("hc_count", 2, 64, 4);
  model.rank = keys.integer("hc_lowrank", 1, kMaxWidth, 320);
  model.ngrams = read_ngrams(keys, spec);
  Layer attending;
  read_layers(keys, model, attending);
  for (const Trait trait : {Trait::kOutputGate, Trait::kNormPlusOne, Trait::kResidualStreams,
                            Trait::kPerLayerInputs, Trait::kOwnAttention})
    add_trait(spec, trait);
  if (!keys.status()) return std::move(spec);  // the search for primes wants believable figures

  SpecWriter writer(spec);
  write_embedding(writer);
  const std::vector<Layer> layers = spec.layers;
  std::int64_t prime = model.ngrams.base - 1;
  for (int i = 0; i < static_cast<int>(layers.size()); ++i) {
    enter_layer(writer, i);
    const auto index = static_cast<std::size_t>(i);
    if (model.ngrams.layers[index]) write_ngrams(writer, model, table_rows(model.ngrams, prime));
    write_layer(writer, model, layers[index]);
  }
  writer.enter("model.");
  write_streams(writer, model, "hyper_connection_mixer", false);
  writer.enter("");
  if (!spec.ties_embeddings) writer.role(Role::kOutputHead, {spec.vocab_size, writer.width()});
  write_mtp(keys, attending, model);
  return std::move(spec);
}

}  // namespace plimsoll::model
