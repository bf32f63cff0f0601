// SPDX-License-Identifier: Apache-2.0
// The tower of GLM 4.1V, 4.5V, 4.6V and GLM-OCR: gated blocks, a convolution that merges patches, a gated
// merger. Source: transformers' Glm4vVisionConfig, Glm4vMoeVisionConfig, GlmOcrVisionConfig and their
// modules.
#include <fmt/format.h>

#include "model/families/towers.h"
#include "model/towers/vit.h"

namespace plimsoll::model {
namespace {

constexpr auto kGroup = WeightGroup::kEncoder;

struct GlmVision {
  std::int64_t depth, width, inner, out, patch, merge, frames, channels, heads, image;
};

GlmVision read_glm(KeyReader& vision, int width, int inner, int out, int heads) {
  GlmVision figures{};
  figures.depth = vision.count("depth", kMaxLayers, 24);
  figures.width = vision.count("hidden_size", kMaxWidth, width);
  figures.inner = vision.count("intermediate_size", kMaxWidth, inner);
  figures.out = vision.count("out_hidden_size", kMaxWidth, out);
  figures.patch = vision.count("patch_size", 1024, 14);
  figures.merge = vision.count("spatial_merge_size", 64, 2);
  figures.frames = vision.count("temporal_patch_size", 64, 2);
  figures.channels = vision.count("in_channels", 64, 3);
  figures.heads = vision.count("num_heads", kMaxHeads, heads);
  figures.image = vision.count("image_size", 1 << 16, 336);
  return figures;
}

// `context`: the width inside the merger.
void write_ends(SpecWriter& writer, const GlmVision& figures, std::int64_t context) {
  const std::int64_t out = figures.out;
  write_patch_embedding(writer, "patch_embed.proj", figures.width,
                        figures.channels * figures.frames * figures.patch * figures.patch, true);
  writer.norm("post_layernorm", figures.width);
  writer.linear(kGroup, "downsample", out, figures.width * figures.merge * figures.merge, true);
  writer.linear(kGroup, "merger.proj", out, out);
  writer.norm("merger.post_projection_norm", out, true);
  writer.linear(kGroup, "merger.gate_proj", context, out);
  writer.linear(kGroup, "merger.up_proj", context, out);
  writer.linear(kGroup, "merger.down_proj", out, context);
}

}  // namespace

void write_glm4v(KeyReader& wrapper, SpecWriter& writer) {
  KeyReader vision = wrapper.child("vision_config");
  const GlmVision figures = read_glm(vision, 1536, 13'696, 4096, 12);
  const std::int64_t side = figures.image / figures.patch;
  writer.enter("visual.");
  // intermediate_size is the merger's; the blocks' feed-forward is as wide as what leaves the tower.
  write_ends(writer, figures, figures.inner);
  writer.norm("post_conv_layernorm", figures.width);
  writer.add(kGroup, "embeddings.position_embedding.weight", {side * side, figures.width});
  write_vit_blocks(writer, "blocks.", static_cast<int>(figures.depth),
                   {.width = figures.width,
                    .inner = figures.out,
                    .has_qkv_bias = vision.flag("attention_bias", false),
                    .has_output_bias = false,
                    .has_ffn_bias = false,
                    .has_norm_bias = false,
                    .is_gated = true});
  wrapper.take_error(vision);
}

void write_glm_ocr(KeyReader& wrapper, SpecWriter& writer) {
  KeyReader vision = wrapper.child("vision_config");
  const GlmVision figures = read_glm(vision, 1024, 4096, 1536, 16);
  const bool has_bias = vision.flag("attention_bias", true);
  writer.enter("visual.");
  write_ends(writer, figures, figures.out * figures.channels);
  write_vit_blocks(writer, "blocks.", static_cast<int>(figures.depth),
                   {.width = figures.width,
                    .inner = figures.inner,
                    .has_qkv_bias = has_bias,
                    .has_output_bias = has_bias,
                    .has_ffn_bias = has_bias,
                    .has_norm_bias = false,
                    .is_gated = true});
  for (std::int64_t i = 0; i < figures.depth; ++i)
    for (const char* norm : {"q_norm", "k_norm"})
      writer.norm(fmt::format("blocks.{}.attn.{}", i, norm), figures.width / figures.heads);
  wrapper.take_error(vision);
}

}  // namespace plimsoll::model
