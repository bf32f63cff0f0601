// SPDX-License-Identifier: Apache-2.0
// The towers of Qwen's multimodal models: 2-VL, 2.5-VL, 3-VL, 3.5 and the Omni models' ears. Source:
// transformers' Qwen2VLVisionConfig, Qwen2_5_VLVisionConfig, Qwen3VLVisionConfig and the Omni audio configs.
#include <fmt/format.h>

#include <algorithm>

#include "model/families/towers.h"
#include "model/towers/vit.h"

namespace plimsoll::model {
namespace {

constexpr auto kGroup = WeightGroup::kEncoder;

// The figures that the three generations share.
struct QwenVision {
  std::int64_t depth, width, inner, patch, merge, frames, channels;
  std::int64_t patch_elements() const { return channels * frames * patch * patch; }
  std::int64_t merged() const { return width * merge * merge; }
};

QwenVision read_vision(KeyReader& vision, const char* width_key, int width, int depth, int inner, int patch) {
  QwenVision figures{};
  figures.depth = vision.count("depth", kMaxLayers, depth);
  figures.width = vision.count(width_key, kMaxWidth, width);
  figures.inner = vision.count("intermediate_size", kMaxWidth, inner);
  figures.patch = vision.count("patch_size", 1024, patch);
  figures.merge = vision.count("spatial_merge_size", 64, 2);
  figures.frames = vision.count("temporal_patch_size", 64, 2);
  figures.channels =
      vision.count("in_channels", 64, vision.has("in_chans") ? vision.count("in_chans", 64, 3) : 3);
  return figures;
}

void write_merger(SpecWriter& writer, const std::string& at, const QwenVision& figures,
                  std::int64_t norm_width, std::int64_t out, bool has_norm_bias) {
  writer.norm(at + "norm", norm_width, has_norm_bias);
  write_projector(writer, at + "linear_fc1", at + "linear_fc2", figures.merged(), figures.merged(), out,
                  true);
}

// Layer norms, position embeddings, and one more merger for each level of features that enters the decoder.
void write_deep(KeyReader& vision, std::size_t levels_by_default, SpecWriter& writer) {
  const QwenVision figures = read_vision(vision, "hidden_size", 1152, 27, 4304, 16);
  const std::int64_t out = vision.count("out_hidden_size", kMaxWidth, 3584);
  const Json& listed = vision["deepstack_visual_indexes"];
  const std::size_t levels =
      listed.is_array() ? std::min<std::size_t>(listed.size(), kMaxLayers) : levels_by_default;
  write_patch_embedding(writer, "patch_embed.proj", figures.width, figures.patch_elements(), true);
  writer.add(kGroup, "pos_embed.weight",
             {vision.integer("num_position_embeddings", 1, kMaxVocab, 2304), figures.width});
  write_vit_blocks(writer, "blocks.", static_cast<int>(figures.depth),
                   {.width = figures.width, .inner = figures.inner});
  write_merger(writer, "merger.", figures, figures.width, out, true);
  for (std::size_t i = 0; i < levels; ++i)
    write_merger(writer, fmt::format("deepstack_merger_list.{}.", i), figures, figures.merged(), out, true);
}

// `kv_heads`: of keys and values; 0: as many as there are heads.
void write_qwen25(KeyReader& vision, SpecWriter& writer, int kv_heads = 0) {
  const QwenVision figures = read_vision(vision, "hidden_size", 3584, 32, 3420, 14);
  const std::int64_t heads = vision.count("num_heads", kMaxHeads, 16);
  write_patch_embedding(writer, "patch_embed.proj", figures.width, figures.patch_elements(), false);
  write_vit_blocks(
      writer, "blocks.", static_cast<int>(figures.depth),
      {.width = figures.width,
       .inner = figures.inner,
       .kv_width = kv_heads > 0 ? std::max<std::int64_t>(1, figures.width / heads * kv_heads) : 0,
       .has_norm_bias = false,
       .is_gated = true});
  write_merger(writer, "merger.", figures, figures.width, vision.count("out_hidden_size", kMaxWidth, 3584),
               false);
}

// Whisper's encoder blocks; keys have no bias there.
void write_audio_blocks(SpecWriter& writer, KeyReader& audio, std::int64_t width, bool has_key_bias) {
  const int layers = audio.count("encoder_layers", kMaxLayers, 32);
  const std::int64_t inner = audio.count("encoder_ffn_dim", kMaxWidth, 5120);
  write_vit_blocks(writer, "layers.", layers, {.width = width, .inner = inner, .has_key_bias = has_key_bias});
  writer.norm("ln_post", width, true);
}

void write_audio25(KeyReader& audio, SpecWriter& writer) {
  const std::int64_t width = audio.count("d_model", kMaxWidth, 1280);
  const std::int64_t out = audio.count("output_dim", kMaxWidth, 3584);
  const std::int64_t mel = audio.count("num_mel_bins", kMaxWidth, 128);
  constexpr std::int64_t kKernel = 3;
  writer.enter("audio_tower.");
  writer.linear(kGroup, "conv1", width, mel * kKernel, true);
  writer.linear(kGroup, "conv2", width, width * kKernel, true);
  writer.add(kGroup, "audio_bos_eos_token.weight", {2, out});
  write_audio_blocks(writer, audio, width, false);
  writer.linear(kGroup, "proj", out, width, true);
}

// Three convolutions halve the mel bins each before the blocks.
void write_audio3(KeyReader& audio, SpecWriter& writer) {
  const std::int64_t width = audio.count("d_model", kMaxWidth, 1280);
  const std::int64_t out = audio.count("output_dim", kMaxWidth, 3584);
  const std::int64_t inner = audio.count("downsample_hidden_size", kMaxWidth, 480);
  std::int64_t mel = audio.count("num_mel_bins", kMaxWidth, 128);
  for (int i = 0; i < 3; ++i) mel = (mel + 1) / 2;
  constexpr std::int64_t kKernel = 3 * 3;
  writer.enter("audio_tower.");
  writer.linear(kGroup, "conv2d1", inner, kKernel, true);
  writer.linear(kGroup, "conv2d2", inner, inner * kKernel, true);
  writer.linear(kGroup, "conv2d3", inner, inner * kKernel, true);
  writer.linear(kGroup, "conv_out", width, inner * mel);
  write_audio_blocks(writer, audio, width, true);
  write_projector(writer, "proj1", "proj2", width, width, out, true);
}

}  // namespace

void write_qwen2_vl(KeyReader& wrapper, SpecWriter& writer) {
  KeyReader vision = wrapper.child("vision_config");
  QwenVision figures = read_vision(vision, "embed_dim", 1280, 32, 1, 14);
  const double ratio = vision.positive("mlp_ratio", 4.0);
  figures.inner = static_cast<std::int64_t>(static_cast<double>(figures.width) * std::min(ratio, 1024.0));
  writer.enter("visual.");
  write_patch_embedding(writer, "patch_embed.proj", figures.width, figures.patch_elements(), false);
  write_vit_blocks(writer, "blocks.", static_cast<int>(figures.depth),
                   {.width = figures.width, .inner = figures.inner});
  write_merger(writer, "merger.", figures, figures.width, vision.count("hidden_size", kMaxWidth, 3584), true);
  wrapper.take_error(vision);
}

void write_qwen2_5_vl(KeyReader& wrapper, SpecWriter& writer) {
  KeyReader vision = wrapper.child("vision_config");
  writer.enter("visual.");
  write_qwen25(vision, writer);
  wrapper.take_error(vision);
}

// EXAONE 4.5's eyes are these with fewer keys and values.
void write_exaone4_5(KeyReader& wrapper, SpecWriter& writer) {
  KeyReader vision = wrapper.child("vision_config");
  writer.enter("visual.");
  write_qwen25(vision, writer, vision.count("num_key_value_heads", kMaxHeads, 8));
  wrapper.take_error(vision);
}

void write_qwen3_vl(KeyReader& wrapper, SpecWriter& writer) {
  KeyReader vision = wrapper.child("vision_config");
  writer.enter("visual.");
  write_deep(vision, 3, writer);
  wrapper.take_error(vision);
}

void write_qwen3_5(KeyReader& wrapper, SpecWriter& writer) {
  KeyReader vision = wrapper.child("vision_config");
  writer.enter("visual.");
  write_deep(vision, 0, writer);
  // No layer's features enter the decoder here, whatever the list says.
  std::erase_if(writer.spec().weights, [](const Weight& weight) {
    return weight.hf_name.find("deepstack_merger_list") != std::string::npos;
  });
  wrapper.take_error(vision);
}

void write_qwen2_5_omni(KeyReader& wrapper, SpecWriter& writer) {
  KeyReader vision = wrapper.child("vision_config"), audio = wrapper.child("audio_config");
  write_audio25(audio, writer);
  writer.enter("visual.");
  write_qwen25(vision, writer);
  wrapper.take_error(vision);
  wrapper.take_error(audio);
}

void write_qwen3_omni(KeyReader& wrapper, SpecWriter& writer) {
  KeyReader vision = wrapper.child("vision_config"), audio = wrapper.child("audio_config");
  write_audio3(audio, writer);
  writer.enter("visual.");
  write_deep(vision, 3, writer);
  wrapper.take_error(vision);
  wrapper.take_error(audio);
}

}  // namespace plimsoll::model
