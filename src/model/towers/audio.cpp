// SPDX-License-Identifier: Apache-2.0
// Ears: Whisper's encoder in Qwen 2 Audio and Voxtral, Phi 4's and Granite Speech's conformers. Source:
// transformers' configs and modules of these names.
#include <fmt/format.h>

#include <string>

#include "model/families/towers.h"
#include "model/towers/qformer.h"
#include "model/towers/vit.h"

namespace plimsoll::model {
namespace {

constexpr auto kGroup = WeightGroup::kEncoder;
constexpr int kMaxKernel = 1024;

// Whisper's encoder, whose keys have no bias. The config spells its figures either way.
struct Whisper {
  std::int64_t width, inner;
};
Whisper write_whisper(KeyReader& audio, SpecWriter& writer) {
  const auto either = [&](const char* first, const char* second, std::int64_t most, int otherwise) {
    return audio.count(audio.has(first) ? first : second, most, otherwise);
  };
  const Whisper figures{either("d_model", "hidden_size", kMaxWidth, 1280),
                        either("encoder_ffn_dim", "intermediate_size", kMaxWidth, 5120)};
  const int layers = either("encoder_layers", "num_hidden_layers", kMaxLayers, 32);
  const std::int64_t mel = audio.count("num_mel_bins", kMaxWidth, 128);
  constexpr std::int64_t kTaps = 3;
  writer.enter("audio_tower.");
  writer.linear(kGroup, "conv1", figures.width, mel * kTaps, true);
  writer.linear(kGroup, "conv2", figures.width, figures.width * kTaps, true);
  writer.add(kGroup, "embed_positions.weight",
             {audio.integer("max_source_positions", 1, kMaxVocab, 1500), figures.width});
  write_vit_blocks(writer, "layers.", layers,
                   {.width = figures.width, .inner = figures.inner, .has_key_bias = false});
  writer.norm("layer_norm", figures.width, true);
  return figures;
}

void write_phi4_vision(KeyReader& vision, SpecWriter& writer) {
  const Vit vit = read_vit(
      vision, {.layers = 27, .width = 1152, .inner = 4304, .heads = 16, .image_size = 448, .patch_size = 14});
  const std::int64_t width = vit.block.width;
  writer.enter("model.embed_tokens_extend.image_embed.");
  write_patch_embedding(writer, "img_processor.embeddings.patch_embedding", width,
                        std::int64_t{vit.channels} * vit.patch_size * vit.patch_size, true);
  writer.add(kGroup, "img_processor.embeddings.position_embedding.weight", {vit.patches(), width});
  write_vit_blocks(writer, "img_processor.encoder.layers.", vit.layers, vit.block);
  writer.norm("img_processor.post_layernorm", width, true);
  write_siglip_head(writer, "img_processor.head.", vit);
  writer.add(kGroup, "global_img_feature_extensor", {width});
  writer.add(kGroup, "sub_img_feature_extensor", {width});
  write_projector(writer, "img_projection_up", "img_projection_down", width, writer.width(), writer.width(),
                  true);
}

void write_phi4_conformer(KeyReader& audio, SpecWriter& writer) {
  const std::int64_t width = audio.count("hidden_size", kMaxWidth, 1024);
  const std::int64_t inner = audio.count("intermediate_size", kMaxWidth, 1536);
  const std::int64_t channels = audio.count("nemo_conv_channels", kMaxWidth, 1024);
  const std::int64_t extended = audio.count("ext_pw_out_channel", kMaxWidth, 1024);
  const std::int64_t separable = audio.count("depthwise_separable_out_channel", kMaxWidth, 1024);
  const std::int64_t deep = width * audio.count("depthwise_multiplier", 64, 1);
  const std::int64_t kernel = audio.count("kernel_size", kMaxKernel, 3);
  const std::int64_t distance = audio.count("bias_max_distance", kMaxWidth, 1000);
  const std::int64_t heads = audio.count("num_attention_heads", kMaxHeads, 16);
  const int blocks = audio.count("num_blocks", kMaxLayers, 24);
  writer.enter("model.embed_tokens_extend.audio_embed.encoder.");
  // Every halving of the time is a depthwise convolution; all but the first mix the channels behind it.
  int index = 0;
  for (int left = audio.count("time_reduction", 1024, 8); left > 1; left /= 2, ++index) {
    writer.linear(kGroup, fmt::format("embed.conv.{}", 2 * index), channels, 3 * 3, true);
    if (index > 0)
      writer.linear(kGroup, fmt::format("embed.conv.{}", 2 * index + 1), channels, channels, true);
  }
  writer.linear(kGroup, "embed.out", width, channels * audio.count("nemo_final_size", kMaxWidth, 10), true);
  writer.add(kGroup, "relative_attention_bias_layer.bias_values.weight",
             {audio.flag("bias_symmetric", false) ? distance : 2 * distance, heads});
  for (int i = 0; i < blocks; ++i) {
    const std::string at = fmt::format("encoders.{}.", i);
    for (const char* ffn : {"feed_forward_in.", "feed_forward_out."}) {
      writer.norm(at + ffn + "layer_norm", width, true);
      writer.linear(kGroup, at + ffn + "gate_up_proj", 2 * inner, width, true);
      writer.linear(kGroup, at + ffn + "down_proj", width, inner, true);
    }
    for (const char* name : {"q_proj", "k_proj", "v_proj", "o_proj"})
      writer.linear(kGroup, at + "self_attn." + name, width, width, true);
    for (const char* norm : {"conv.layer_norm", "layer_norm_att", "layer_norm"})
      writer.norm(at + norm, width, true);
    for (const char* name : {"conv.glu.b1", "conv.glu.b2"}) writer.add(kGroup, at + name, {extended});
    writer.linear(kGroup, at + "conv.glu.ext_pw_conv_1d", 2 * extended, width, true);
    writer.linear(kGroup, at + "conv.dw_sep_conv_1d.dw_conv", deep, kernel, true);
    writer.linear(kGroup, at + "conv.dw_sep_conv_1d.pw_conv", separable, deep, true);
    writer.linear(kGroup, at + "conv.ext_pw_conv_1d", extended, width, true);
  }
  const std::int64_t in = width * audio.count("downsample_rate", 64, 1), out = writer.width();
  writer.enter("model.embed_tokens_extend.audio_embed.");
  write_projector(writer, "up_proj_for_speech", "down_proj_for_speech", in, out, out, true);
  write_projector(writer, "up_proj_for_vision_speech", "down_proj_for_vision_speech", in, out, out, true);
}

void write_granite_encoder(KeyReader& audio, SpecWriter& writer) {
  const std::int64_t width = audio.count("hidden_dim", kMaxWidth, 1024);
  const std::int64_t inner = width * audio.count("feedforward_mult", 64, 4);
  const std::int64_t head_dim = audio.count("dim_head", kMaxHeadDim, 128);
  const std::int64_t heads = head_dim * audio.count("num_heads", kMaxHeads, 8);
  const std::int64_t middle = width * audio.count("conv_expansion_factor", 64, 2);
  const std::int64_t positions = 2 * audio.integer("max_pos_emb", 1, kMaxVocab, 512) + 1;
  const std::int64_t kernel = audio.count("conv_kernel_size", kMaxKernel, 15);
  const std::int64_t out = audio.count("output_dim", kMaxWidth, 42);
  const int layers = audio.count("num_layers", kMaxLayers, 10);
  writer.enter("encoder.");
  writer.linear(kGroup, "input_linear", width, audio.count("input_dim", kMaxWidth, 160), true);
  for (int i = 0; i < layers; ++i) {
    const std::string at = fmt::format("layers.{}.", i);
    for (const char* ffn : {"ff1.", "ff2."}) {
      writer.norm(at + ffn + "pre_norm", width, true);
      writer.linear(kGroup, at + ffn + "up_proj", inner, width, true);
      writer.linear(kGroup, at + ffn + "down_proj", width, inner, true);
    }
    for (const char* norm : {"attn.pre_norm", "conv.norm", "post_norm"}) writer.norm(at + norm, width, true);
    writer.linear(kGroup, at + "attn.to_q", heads, width);
    writer.linear(kGroup, at + "attn.to_kv", 2 * heads, width);
    writer.linear(kGroup, at + "attn.to_out", width, heads, true);
    writer.add(kGroup, at + "attn.rel_pos_emb.weight", {positions, head_dim});
    writer.linear(kGroup, at + "conv.up_conv", 2 * middle, width, true);
    writer.add(kGroup, at + "conv.depth_conv.conv.weight", {middle, 1, kernel});
    writer.norm(at + "conv.batch_norm", middle, true);
    writer.linear(kGroup, at + "conv.down_conv", width, middle, true);
  }
  write_projector(writer, "out", "out_mid", width, out, width, true);
}

}  // namespace

void write_qwen2_audio(KeyReader& wrapper, SpecWriter& writer) {
  KeyReader audio = wrapper.child("audio_config");
  const Whisper whisper = write_whisper(audio, writer);
  writer.enter("multi_modal_projector.");
  writer.linear(kGroup, "linear", writer.width(), whisper.width, true);
  wrapper.take_error(audio);
}

void write_voxtral(KeyReader& wrapper, SpecWriter& writer) {
  KeyReader audio = wrapper.child("audio_config");
  const Whisper whisper = write_whisper(audio, writer);
  // Four frames are joined: their widths together are that of the feed-forward.
  writer.enter("multi_modal_projector.");
  write_projector(writer, "linear_1", "linear_2", whisper.inner, writer.width(), writer.width(), false);
  wrapper.take_error(audio);
}

void write_phi4_multimodal(KeyReader& wrapper, SpecWriter& writer) {
  KeyReader vision = wrapper.child("vision_config"), audio = wrapper.child("audio_config");
  write_phi4_vision(vision, writer);
  write_phi4_conformer(audio, writer);
  wrapper.take_error(vision);
  wrapper.take_error(audio);
}

void write_granite_speech(KeyReader& wrapper, SpecWriter& writer) {
  KeyReader audio = wrapper.child("encoder_config"), projector = wrapper.child("projector_config");
  write_granite_encoder(audio, writer);
  const std::int64_t queries =
      wrapper.count("window_size", 1 << 16, 15) / wrapper.count("downsample_rate", 1 << 16, 5);
  writer.enter("projector.");
  const std::int64_t width = write_qformer(projector, "qformer.", writer);
  writer.add(kGroup, "query", {queries, width});
  writer.linear(kGroup, "linear", writer.width(), width, true);
  wrapper.take_error(audio);
  wrapper.take_error(projector);
}

}  // namespace plimsoll::model
