// SPDX-License-Identifier: Apache-2.0
// Encoder-decoders: T5 and its relatives; BART, mBART, Marian, Pegasus, Blenderbot, M2M-100, Whisper. The
// spec's layers are the decoder's; the keys and values of cross attention do not grow with the text and are
// no part of them. Everything of the encoder is in the group of encoders. Source: transformers' configuration
// and modeling files of these names.
#include <fmt/format.h>

#include <string>

#include "model/families/families.h"
#include "model/families/parts.h"

namespace plimsoll::model {
namespace {

using Group = WeightGroup;

// One side of such a model.
struct Side {
  int layers = 0, heads = 0;
  std::int64_t inner = 0;
};

struct T5Layout {
  std::int64_t width = 0, projected = 0;  // of the model; of all heads together
  std::int64_t buckets = 0;
  int heads = 0;
  bool is_gated = false;
  bool has_bias_everywhere = false;  // relative positions in every layer (UMT5), else in the first
};

void write_t5_attention(SpecWriter& writer, const std::string& at, std::string_view name,
                        const T5Layout& t5) {
  const std::string base = at + std::string(name) + ".";
  for (const char* part : {"q", "k", "v"})
    writer.linear(Group::kAttention, base + part, t5.projected, t5.width);
  writer.linear(Group::kAttention, base + "o", t5.width, t5.projected);
  writer.norm(at + "layer_norm", t5.width);
}

void write_t5_block(SpecWriter& writer, const T5Layout& t5, std::int64_t inner, bool is_decoder,
                    bool is_first) {
  write_t5_attention(writer, "layer.0.", "SelfAttention", t5);
  if (is_first || t5.has_bias_everywhere)
    writer.add(Group::kAttention, "layer.0.SelfAttention.relative_attention_bias.weight",
               {t5.buckets, t5.heads});
  if (is_decoder) write_t5_attention(writer, "layer.1.", "EncDecAttention", t5);
  const std::string at = is_decoder ? "layer.2." : "layer.1.";
  for (const char* part : {"wi", "wi_0", "wi_1"})
    if (t5.is_gated == (std::string_view(part) != "wi"))
      writer.linear(Group::kFfn, fmt::format("{}DenseReluDense.{}", at, part), inner, t5.width);
  writer.linear(Group::kFfn, at + "DenseReluDense.wo", t5.width, inner);
  writer.norm(at + "layer_norm", t5.width);
}

void note_assumed(const KeyReader& keys, std::string_view key, std::int64_t value, ModelSpec& spec) {
  if (!keys.has(key)) spec.assumed.push_back({std::string(key), value, keys.contains(key)});
}

ModelSpec read_t5(KeyReader& keys, const DecoderDefaults& class_defaults, std::string_view activation,
                  bool has_bias_everywhere) {
  DecoderDefaults defaults = class_defaults;
  defaults.context_tokens = 512;
  defaults.ties_embeddings = true;
  defaults.head_dim = keys.count("d_kv", kMaxHeadDim, 64);
  defaults.has_class_defaults = true;
  ModelSpec spec = read_config_decoder(keys, defaults);
  add_trait(spec, Trait::kEncoderDecoder);
  spec.rope = RopeSpec();
  spec.rope.kind = RopeKind::kNone;
  const int encoder_layers = static_cast<int>(spec.layers.size());
  const int decoder_layers = keys.count("num_decoder_layers", kMaxLayers, encoder_layers);
  Layer layer = spec.layers.front();
  layer.ffn.intermediate_size = keys.count("d_ff", kMaxWidth, defaults.intermediate_size);
  std::erase_if(spec.assumed, [](const AssumedFigure& figure) { return figure.key == "intermediate_size"; });
  note_assumed(keys, "d_ff", layer.ffn.intermediate_size, spec);
  const auto& attention = std::get<Attention>(layer.mixer);
  const std::string proj = keys.text("feed_forward_proj", activation);
  const T5Layout t5{spec.hidden_size,
                    std::int64_t{attention.q_heads} * attention.head_dim,
                    keys.count("relative_attention_num_buckets", kMaxContext, 32),
                    attention.q_heads,
                    proj.starts_with("gated-"),
                    has_bias_everywhere};
  layer.ffn.is_gated = t5.is_gated;
  spec.layers.assign(static_cast<std::size_t>(decoder_layers), layer);

  SpecWriter writer(spec);
  writer.enter("");
  writer.add(Group::kEmbedding, "shared.weight", {spec.vocab_size, spec.hidden_size});
  writer.override_group(Group::kEncoder);
  for (int i = 0; i < encoder_layers; ++i) {
    writer.enter(fmt::format("encoder.block.{}.", i));
    write_t5_block(writer, t5, layer.ffn.intermediate_size, false, i == 0);
  }
  writer.enter("encoder.");
  writer.norm("final_layer_norm", t5.width);
  writer.end_override();
  for (int i = 0; i < decoder_layers; ++i) {
    writer.enter(fmt::format("decoder.block.{}.", i), i);
    write_t5_block(writer, t5, layer.ffn.intermediate_size, true, i == 0);
  }
  writer.enter("");
  writer.norm("decoder.final_layer_norm", t5.width);
  if (!spec.ties_embeddings) writer.add(Group::kHead, "lm_head.weight", {spec.vocab_size, spec.hidden_size});
  spec.has_file_names = true;
  return spec;
}

// What the relatives of BART differ in.
struct BartStyle {
  int position_offset = 0;          // rows before the first position; -1: positions have no weights
  bool has_embedding_norm = false;  // behind the embedding
  bool has_last_norm = false;       // behind the last layer
  bool has_logits_bias = true;      // a buffer [1, vocab]
  bool is_speech = false;           // Whisper: an encoder of sound, keys without bias
};

void write_bart_attention(SpecWriter& writer, const std::string& name, bool has_key_bias) {
  const std::int64_t width = writer.width();
  writer.linear(Group::kAttention, name + ".q_proj", width, width, true);
  writer.linear(Group::kAttention, name + ".k_proj", width, width, has_key_bias);
  writer.linear(Group::kAttention, name + ".v_proj", width, width, true);
  writer.linear(Group::kAttention, name + ".out_proj", width, width, true);
  writer.norm(name + "_layer_norm", width, true);
}

void write_bart_layer(SpecWriter& writer, std::int64_t inner, bool is_decoder, bool has_key_bias) {
  write_bart_attention(writer, "self_attn", has_key_bias);
  if (is_decoder) write_bart_attention(writer, "encoder_attn", has_key_bias);
  writer.linear(Group::kFfn, "fc1", inner, writer.width(), true);
  writer.linear(Group::kFfn, "fc2", writer.width(), inner, true);
  writer.norm("final_layer_norm", writer.width(), true);
}

Side read_side(KeyReader& keys, std::string_view name, const Side& otherwise) {
  const std::string prefix = std::string(name) + "_";
  return {keys.count(prefix + "layers", kMaxLayers, otherwise.layers),
          keys.count(prefix + "attention_heads", kMaxHeads, otherwise.heads),
          keys.count(prefix + "ffn_dim", kMaxWidth, otherwise.inner)};
}

void write_bart_ends(SpecWriter& writer, const std::string& side, std::int64_t positions,
                     const BartStyle& style) {
  writer.enter("model." + side + ".");
  if (positions > 0) writer.add(Group::kEmbedding, "embed_positions.weight", {positions, writer.width()});
  if (style.has_embedding_norm) writer.norm("layernorm_embedding", writer.width(), true);
  if (style.has_last_norm) writer.norm("layer_norm", writer.width(), true);
}

void write_bart_layers(SpecWriter& writer, const std::string& side, const Side& figures, bool has_key_bias) {
  const bool is_decoder = side == "decoder";
  for (int i = 0; i < figures.layers; ++i) {
    writer.enter(fmt::format("model.{}.layers.{}.", side, i), is_decoder ? i : -1);
    write_bart_layer(writer, figures.inner, is_decoder, has_key_bias);
  }
}

ModelSpec read_bart(KeyReader& keys, DecoderDefaults defaults, const Side& encoder_default,
                    const Side& decoder_default, const BartStyle& style) {
  const Side encoder = read_side(keys, "encoder", encoder_default);
  const Side decoder = read_side(keys, "decoder", decoder_default);
  defaults.ties_embeddings = true;
  defaults.has_class_defaults = true;
  defaults.q_heads = 1;  // the two sides state their own
  ModelSpec spec = read_config_decoder(keys, defaults);
  add_trait(spec, Trait::kEncoderDecoder);
  spec.rope = RopeSpec();
  spec.rope.kind = RopeKind::kNone;
  Attention attention;
  for (const auto& [name, side] : {std::pair("encoder_", encoder), std::pair("decoder_", decoder)}) {
    note_assumed(keys, std::string(name) + "layers", side.layers, spec);
    note_assumed(keys, std::string(name) + "attention_heads", side.heads, spec);
    note_assumed(keys, std::string(name) + "ffn_dim", side.inner, spec);
  }
  attention.q_heads = attention.kv_heads = decoder.heads;
  if (spec.hidden_size % decoder.heads != 0)
    keys.add_error(ErrorCode::kMalformed, "decoder_attention_heads",
                   fmt::format("reading the model: a width of {} does not split into {} heads",
                               spec.hidden_size, decoder.heads));
  attention.head_dim = std::max(1, spec.hidden_size / decoder.heads);
  attention.has_qkv_bias = attention.has_output_bias = true;
  attention.uses_rope = false;
  Layer layer{attention, spec.layers.front().ffn};
  layer.ffn.is_gated = false;
  layer.ffn.has_bias = true;
  layer.ffn.intermediate_size = static_cast<int>(decoder.inner);
  spec.layers.assign(static_cast<std::size_t>(decoder.layers), layer);

  const std::int64_t stated = keys.integer("max_position_embeddings", 1, kMaxVocab, defaults.context_tokens);
  std::int64_t source = style.position_offset < 0 ? 0 : stated + style.position_offset, target = source;
  if (style.is_speech) {
    source = keys.integer("max_source_positions", 1, kMaxVocab, 1500);
    target = keys.integer("max_target_positions", 1, kMaxVocab, 448);
    spec.native_context_tokens = spec.extended_context_tokens = target;
  }
  SpecWriter writer(spec);
  const std::int64_t vocab = spec.vocab_size, width = spec.hidden_size;
  const bool is_shared = spec.ties_embeddings || style.is_speech;
  writer.enter("model.");
  writer.add(Group::kEmbedding, style.is_speech ? "decoder.embed_tokens.weight" : "shared.weight",
             {vocab, width});
  writer.override_group(Group::kEncoder);
  if (style.is_speech) {
    const std::int64_t mels = keys.count("num_mel_bins", kMaxWidth, 80);
    writer.enter("model.encoder.");
    writer.add(Group::kEncoder, "conv1.weight", {width, mels, 3});
    writer.add(Group::kEncoder, "conv1.bias", {width});
    writer.add(Group::kEncoder, "conv2.weight", {width, width, 3});
    writer.add(Group::kEncoder, "conv2.bias", {width});
  }
  write_bart_ends(writer, "encoder", source, style);
  if (!is_shared) writer.add(Group::kEncoder, "embed_tokens.weight", {vocab, width});
  write_bart_layers(writer, "encoder", encoder, !style.is_speech);
  writer.end_override();
  write_bart_ends(writer, "decoder", target, style);
  if (!is_shared) writer.add(Group::kEmbedding, "embed_tokens.weight", {vocab, width});
  write_bart_layers(writer, "decoder", decoder, !style.is_speech);
  writer.enter("");
  if (!spec.ties_embeddings)
    writer.add(Group::kHead, style.is_speech ? "proj_out.weight" : "lm_head.weight", {vocab, width});
  if (style.has_logits_bias) writer.add(Group::kHead, "final_logits_bias", {1, vocab}).is_parameter = false;
  spec.has_file_names = true;
  return spec;
}

}  // namespace

ModelSpec t5_from_config(KeyReader& keys) {
  return read_t5(
      keys,
      {.hidden_size = 512, .intermediate_size = 2048, .num_layers = 6, .q_heads = 8, .vocab_size = 32'128},
      "relu", false);
}

ModelSpec mt5_from_config(KeyReader& keys) {
  return read_t5(
      keys,
      {.hidden_size = 512, .intermediate_size = 1024, .num_layers = 8, .q_heads = 6, .vocab_size = 250'112},
      "gated-gelu", false);
}

ModelSpec umt5_from_config(KeyReader& keys) {
  return read_t5(
      keys,
      {.hidden_size = 512, .intermediate_size = 1024, .num_layers = 8, .q_heads = 6, .vocab_size = 250'112},
      "gated-gelu", true);
}

ModelSpec bart_from_config(KeyReader& keys) {
  return read_bart(keys, {.context_tokens = 1024, .hidden_size = 1024, .vocab_size = 50'265}, {12, 16, 4096},
                   {12, 16, 4096}, {.position_offset = 2, .has_embedding_norm = true});
}

ModelSpec mbart_from_config(KeyReader& keys) {
  return read_bart(keys, {.context_tokens = 1024, .hidden_size = 1024, .vocab_size = 50'265}, {12, 16, 4096},
                   {12, 16, 4096}, {.position_offset = 2, .has_embedding_norm = true, .has_last_norm = true});
}

ModelSpec pegasus_from_config(KeyReader& keys) {
  return read_bart(keys, {.context_tokens = 1024, .hidden_size = 1024, .vocab_size = 50'265}, {12, 16, 4096},
                   {12, 16, 4096}, {.has_last_norm = true});
}

ModelSpec blenderbot_from_config(KeyReader& keys) {
  return read_bart(keys, {.context_tokens = 128, .hidden_size = 2560, .vocab_size = 8008}, {2, 32, 10'240},
                   {24, 32, 10'240}, {.has_last_norm = true});
}

ModelSpec marian_from_config(KeyReader& keys) {
  return read_bart(keys, {.context_tokens = 1024, .hidden_size = 1024, .vocab_size = 58'101}, {12, 16, 4096},
                   {12, 16, 4096}, {});
}

ModelSpec m2m_100_from_config(KeyReader& keys) {
  return read_bart(keys, {.context_tokens = 1024, .hidden_size = 1024, .vocab_size = 128'112}, {12, 16, 4096},
                   {12, 16, 4096}, {.position_offset = -1, .has_last_norm = true, .has_logits_bias = false});
}

ModelSpec whisper_from_config(KeyReader& keys) {
  return read_bart(keys, {.context_tokens = 448, .hidden_size = 384, .vocab_size = 51'865}, {4, 6, 1536},
                   {4, 6, 1536}, {.has_last_norm = true, .has_logits_bias = false, .is_speech = true});
}

}  // namespace plimsoll::model
