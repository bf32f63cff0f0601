// SPDX-License-Identifier: Apache-2.0
// Eyes and ears of Gemma 3n and 4: a conformer that both share, the vision tower of fixed shape in 3n, 4's
// own blocks. Source: transformers' Gemma3n and Gemma4 configs and modules; MobileNetV5's table is that of
// timm's mobilenetv5_300m_enc.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>

#include "model/families/towers.h"
#include "model/towers/vit.h"

namespace plimsoll::model {
namespace {

constexpr auto kGroup = WeightGroup::kEncoder;
constexpr int kMaxKernel = 1024;

// The channels of the two convolutions in front of Gemma's conformer.
std::array<std::int64_t, 2> read_channels(KeyReader& audio, std::string_view key) {
  std::array<std::int64_t, 2> channels{128, 32};
  const Json& list = audio[key];
  for (std::size_t i = 0; i < 2 && list.size() == 2; ++i)
    channels[i] = std::clamp<std::int64_t>(list.items()[i].as_integer().value_or(channels[i]), 1, kMaxWidth);
  return channels;
}

struct Conformer {
  int layers = 12;
  std::int64_t width = 0, heads = 8, kernel = 5;
};

void write_gemma_conformer(SpecWriter& writer, const Conformer& shape) {
  const std::int64_t width = shape.width;
  for (int i = 0; i < shape.layers; ++i) {
    writer.enter(fmt::format("audio_tower.conformer.{}.", i));
    for (const char* ffn : {"ffw_layer_start.", "ffw_layer_end."}) {
      const std::string at(ffn);
      writer.norm(at + "pre_layer_norm", width);
      writer.linear(kGroup, at + "ffw_layer_1", 4 * width, width);
      writer.linear(kGroup, at + "ffw_layer_2", width, 4 * width);
      writer.norm(at + "post_layer_norm", width);
    }
    for (const char* norm : {"attention.pre_attn_norm", "attention.post_norm", "lconv1d.pre_layer_norm",
                             "lconv1d.conv_norm", "norm"})
      writer.norm(norm, width);
    writer.add(kGroup, "attention.attn.per_dim_scale", {width / shape.heads});
    for (const char* name :
         {"attention.attn.relative_position_embedding.pos_proj", "attention.attn.q_proj",
          "attention.attn.k_proj", "attention.attn.v_proj", "attention.post", "lconv1d.linear_end"})
      writer.linear(kGroup, name, width, width);
    writer.linear(kGroup, "lconv1d.linear_start", 2 * width, width);
    writer.add(kGroup, "lconv1d.depthwise_conv1d.weight", {width, 1, shape.kernel});
  }
}

void write_gemma_convolutions(SpecWriter& writer, const std::array<std::int64_t, 2>& channels,
                              std::int64_t projected, std::int64_t width) {
  constexpr std::int64_t kTaps = 3 * 3;
  writer.enter("audio_tower.subsample_conv_projection.");
  writer.add(kGroup, "conv_0.conv.weight", {channels[0], kTaps});
  writer.norm("conv_0.norm", channels[0]);
  writer.add(kGroup, "conv_1.conv.weight", {channels[1], channels[0], kTaps});
  writer.norm("conv_1.norm", channels[1]);
  writer.linear(kGroup, "input_proj_linear", width, projected);
}

// Soft tokens and the few hard ones of a modality, into the decoder's width.
void write_gemma3n_embedder(SpecWriter& writer, std::string prefix, std::int64_t vocab, std::int64_t width) {
  writer.enter(std::move(prefix));
  writer.add(kGroup, "embedding.weight", {vocab, width});
  writer.norm("hard_embedding_norm", width);
  writer.norm("soft_embedding_norm", width);
  writer.linear(kGroup, "embedding_projection", writer.width(), width);
}

// An inverted bottleneck: kernel 0 leaves a depthwise convolution out.
struct Bottleneck {
  std::int64_t in, expanded, out, start_kernel, middle_kernel;
};
void write_bottleneck(SpecWriter& writer, const std::string& at, const Bottleneck& b) {
  if (b.start_kernel > 0) {
    writer.add(kGroup, at + "dw_start.conv.weight", {b.in, 1, b.start_kernel, b.start_kernel});
    writer.norm(at + "dw_start.bn", b.in);
  }
  writer.linear(kGroup, at + "pw_exp.conv", b.expanded, b.in);
  writer.norm(at + "pw_exp.bn", b.expanded);
  if (b.middle_kernel > 0) {
    writer.add(kGroup, at + "dw_mid.conv.weight", {b.expanded, 1, b.middle_kernel, b.middle_kernel});
    writer.norm(at + "dw_mid.bn", b.expanded);
  }
  writer.linear(kGroup, at + "pw_proj.conv", b.out, b.expanded);
  writer.norm(at + "pw_proj.bn", b.out);
  writer.add(kGroup, at + "layer_scale.gamma", {b.out});
}

// Attention with one head of keys and values; they are taken at half the resolution where `reduces`.
void write_mobile_attention(SpecWriter& writer, const std::string& at, std::int64_t width,
                            std::int64_t head_dim, bool reduces) {
  constexpr std::int64_t kHeads[] = {12, 16};
  const std::int64_t queries = (width == 640 ? kHeads[0] : kHeads[1]) * head_dim;
  writer.norm(at + "norm", width);
  writer.linear(kGroup, at + "attn.query.proj", queries, width);
  for (const char* name : {"attn.key.", "attn.value."}) {
    if (reduces) {
      writer.add(kGroup, at + name + "down_conv.weight", {width, 1, 3, 3});
      writer.norm(at + name + "norm", width);
    }
    writer.linear(kGroup, at + name + "proj", head_dim, width);
  }
  writer.linear(kGroup, at + "attn.output.proj", width, queries);
  writer.add(kGroup, at + "layer_scale.gamma", {width});
}

// Four stages; the last two alternate attention and a feed-forward behind their convolutions.
void write_mobilenet(SpecWriter& writer) {
  writer.enter("vision_tower.timm_model.");
  writer.linear(kGroup, "conv_stem.conv", 64, 3 * 3 * 3, true);
  writer.norm("conv_stem.bn", 64);
  for (int i = 0; i < 3; ++i) {
    const std::string at = fmt::format("blocks.0.{}.", i);
    const std::int64_t in = i == 0 ? 64 : 128;
    writer.add(kGroup, at + "conv_exp.weight", {4 * in, in, 3, 3});
    writer.norm(at + "bn1", 4 * in);
    writer.linear(kGroup, at + "conv_pwl", 128, 4 * in);
    writer.norm(at + "bn2", 128);
  }
  write_bottleneck(writer, "blocks.1.0.", {128, 768, 256, 3, 5});
  for (int i = 1; i < 5; ++i)
    write_bottleneck(writer, fmt::format("blocks.1.{}.", i), {256, 1024, 256, i % 2 == 1 ? 5 : 3, 0});
  write_bottleneck(writer, "blocks.2.0.", {256, 1536, 640, 5, 5});
  for (int i = 1; i < 8; ++i)
    write_bottleneck(writer, fmt::format("blocks.2.{}.", i), {640, 2560, 640, 5, 0});
  write_bottleneck(writer, "blocks.2.8.", {640, 640, 640, 0, 0});
  for (int i = 9; i < 37; i += 2) {
    write_mobile_attention(writer, fmt::format("blocks.2.{}.", i), 640, 64, true);
    write_bottleneck(writer, fmt::format("blocks.2.{}.", i + 1), {640, 1280, 640, 0, 0});
  }
  write_bottleneck(writer, "blocks.3.0.", {640, 3840, 1280, 5, 5});
  for (int i = 1; i < 39; i += 2) {
    write_mobile_attention(writer, fmt::format("blocks.3.{}.", i), 1280, 96, false);
    write_bottleneck(writer, fmt::format("blocks.3.{}.", i + 1), {1280, 2560, 1280, 0, 0});
  }
  // The features of the last two stages are fused.
  writer.linear(kGroup, "msfa.ffn.pw_exp.conv", 3840, 1920);
  writer.norm("msfa.ffn.pw_exp.bn", 3840);
  writer.linear(kGroup, "msfa.ffn.pw_proj.conv", 2048, 3840);
  writer.norm("msfa.ffn.pw_proj.bn", 2048);
  writer.norm("msfa.norm", 2048);
}

void write_gemma4_audio(KeyReader& wrapper, SpecWriter& writer) {
  if (!wrapper["audio_config"].is_object()) return;
  KeyReader audio = wrapper.child("audio_config");
  Conformer shape;
  shape.width = audio.count("hidden_size", kMaxWidth, 1024);
  shape.layers = audio.count("num_hidden_layers", kMaxLayers, 12);
  shape.heads = audio.count("num_attention_heads", kMaxHeads, 8);
  shape.kernel = audio.count("conv_kernel_size", kMaxKernel, 5);
  const auto channels = read_channels(audio, "subsampling_conv_channels");
  const std::int64_t out = audio.count("output_proj_dims", kMaxWidth, 1536);
  write_gemma_convolutions(writer, channels, channels[0] / 4 * channels[1], shape.width);
  write_gemma_conformer(writer, shape);
  writer.enter("");
  writer.linear(kGroup, "audio_tower.output_proj", out, shape.width, true);
  writer.linear(kGroup, "embed_audio.embedding_projection", writer.width(), out);
  wrapper.take_error(audio);
}

}  // namespace

void write_gemma3n(KeyReader& wrapper, SpecWriter& writer) {
  KeyReader vision = wrapper.child("vision_config"), audio = wrapper.child("audio_config");
  if (vision.text("architecture", "mobilenetv5_300m_enc") != "mobilenetv5_300m_enc")
    wrapper.add_error(ErrorCode::kUnsupported, "vision_config",
                      "reading the model: only mobilenetv5_300m_enc is known as Gemma 3n's vision tower");
  write_mobilenet(writer);
  write_gemma3n_embedder(writer, "embed_vision.", vision.integer("vocab_size", 1, kMaxVocab, 128),
                         vision.count("hidden_size", kMaxWidth, 2048));
  Conformer shape;
  shape.width = audio.count("hidden_size", kMaxWidth, 1536);
  shape.layers = audio.count("conf_num_hidden_layers", kMaxLayers, 12);
  shape.heads = audio.count("conf_num_attention_heads", kMaxHeads, 8);
  shape.kernel = audio.count("conf_conv_kernel_size", kMaxKernel, 5);
  const auto channels = read_channels(audio, "sscp_conv_channel_size");
  // Two convolutions of stride two.
  const std::int64_t mel = (audio.count("input_feat_size", kMaxWidth, 128) + 3) / 4;
  write_gemma_convolutions(writer, channels, channels[1] * mel, shape.width);
  write_gemma_conformer(writer, shape);
  write_gemma3n_embedder(writer, "embed_audio.", audio.integer("vocab_size", 1, kMaxVocab, 128), shape.width);
  wrapper.take_error(vision);
  wrapper.take_error(audio);
}

void write_gemma4(KeyReader& wrapper, SpecWriter& writer) {
  write_gemma4_audio(wrapper, writer);
  if (!wrapper["vision_config"].is_object()) return;  // text only
  KeyReader vision = wrapper.child("vision_config");
  const int layers = vision.count("num_hidden_layers", kMaxLayers, 16);
  const std::int64_t width = vision.count("hidden_size", kMaxWidth, 768);
  const std::int64_t inner = vision.count("intermediate_size", kMaxWidth, 3072);
  const std::int64_t heads = vision.count("num_attention_heads", kMaxHeads, 12);
  const std::int64_t kv_heads = vision.count("num_key_value_heads", kMaxHeads, heads);
  const std::int64_t head_dim = vision.count("head_dim", kMaxHeadDim, 64);
  const std::int64_t patch = vision.count("patch_size", 1024, 16);
  writer.enter("vision_tower.");
  writer.linear(kGroup, "patch_embedder.input_proj", width, 3 * patch * patch);
  writer.add(kGroup, "patch_embedder.position_embedding_table",
             {2, vision.integer("position_embedding_size", 1, kMaxVocab, 10 * 1024), width});
  for (int i = 0; i < layers; ++i) {
    const std::string at = "encoder.layers." + std::to_string(i) + ".";
    for (const char* norm : {"input_layernorm", "post_attention_layernorm", "pre_feedforward_layernorm",
                             "post_feedforward_layernorm"})
      writer.norm(at + norm, width);
    writer.norm(at + "self_attn.q_norm", head_dim);
    writer.norm(at + "self_attn.k_norm", head_dim);
    writer.linear(kGroup, at + "self_attn.q_proj.linear", heads * head_dim, width);
    writer.linear(kGroup, at + "self_attn.k_proj.linear", kv_heads * head_dim, width);
    writer.linear(kGroup, at + "self_attn.v_proj.linear", kv_heads * head_dim, width);
    writer.linear(kGroup, at + "self_attn.o_proj.linear", width, heads * head_dim);
    for (const char* name : {"mlp.gate_proj.linear", "mlp.up_proj.linear"})
      writer.linear(kGroup, at + name, inner, width);
    writer.linear(kGroup, at + "mlp.down_proj.linear", width, inner);
  }
  writer.enter("embed_vision.");
  writer.linear(kGroup, "embedding_projection", writer.width(), width);
  wrapper.take_error(vision);
}

}  // namespace plimsoll::model
