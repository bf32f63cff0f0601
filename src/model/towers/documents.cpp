// SPDX-License-Identifier: Apache-2.0
// Towers around plain vision transformers, most of them readers of documents: DeepSeek-VL, PaddleOCR-VL,
// Idefics 2, Ovis 2, Hunyuan VL, GOT-OCR 2, InternVL's own code, MiniCPM-V. Source: transformers' configs and
// modules of these names; InternVL's and MiniCPM-V's as their published code has them.
#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "model/families/towers.h"
#include "model/towers/vit.h"

namespace plimsoll::model {
namespace {

constexpr auto kGroup = WeightGroup::kEncoder;

std::int64_t patch_elements(const Vit& vit) {
  return std::int64_t{vit.channels} * vit.patch_size * vit.patch_size;
}

// SigLIP without its pooling head, and without its last `dropped` blocks.
Vit write_headless(KeyReader& vision, const VitDefaults& defaults, SpecWriter& writer, int dropped = 0) {
  Vit vit = read_vit(vision, defaults);
  vit.layers = std::max(0, vit.layers - dropped);
  writer.enter("vision_tower.");
  write_patch_embedding(writer, "embeddings.patch_embedding", vit.block.width, patch_elements(vit), true);
  writer.add(kGroup, "embeddings.position_embedding.weight", {vit.patches(), vit.block.width});
  write_vit_blocks(writer, "encoder.layers.", vit.layers, vit.block);
  writer.norm("post_layernorm", vit.block.width, true);
  return vit;
}

// Segment Anything's encoder: most blocks attend within windows, those of global_attn_indexes to all.
void write_sam(KeyReader& vision, SpecWriter& writer) {
  Vit vit = read_vit(
      vision, {.layers = 12, .width = 768, .inner = 3072, .heads = 12, .image_size = 1024, .patch_size = 16});
  vit.block.inner = vision.count("mlp_dim", kMaxWidth, 4 * vit.block.width);
  vit.block.has_qkv_bias = vision.flag("qkv_bias", true);
  const std::int64_t width = vit.block.width, side = vit.image_size / vit.patch_size;
  const std::int64_t head_dim = width / vision.count("num_attention_heads", kMaxHeads, 12);
  const std::int64_t window = vision.integer("window_size", 0, 1 << 16, 14);
  const std::int64_t out = vision.count("output_channels", kMaxWidth, 256);
  std::vector<bool> is_global =
      vision.named_layers("global_attn_indexes", static_cast<std::size_t>(vit.layers));
  if (!vision.has("global_attn_indexes"))
    for (std::size_t i = 2; i < is_global.size(); i += 3) is_global[i] = i <= 11;
  writer.enter("vision_tower.");
  write_patch_embedding(writer, "patch_embed.projection", width, patch_elements(vit), true);
  if (vision.flag("use_abs_pos", true)) writer.add(kGroup, "pos_embed", {1, side, side, width});
  write_vit_blocks(writer, "layers.", vit.layers, vit.block);
  for (int i = 0; vision.flag("use_rel_pos", true) && i < vit.layers; ++i) {
    const std::int64_t seen = is_global[static_cast<std::size_t>(i)] || window == 0 ? side : window;
    for (const char* name : {"rel_pos_h", "rel_pos_w"})
      writer.add(kGroup, fmt::format("layers.{}.attn.{}", i, name), {2 * seen - 1, head_dim});
  }
  writer.linear(kGroup, "neck.conv1", out, width);
  writer.norm("neck.layer_norm1", out, true);
  writer.linear(kGroup, "neck.conv2", out, out * 3 * 3);
  writer.norm("neck.layer_norm2", out, true);
}

}  // namespace

void write_deepseek_vl(KeyReader& wrapper, SpecWriter& writer) {
  KeyReader vision = wrapper.child("vision_config");
  const Vit vit = write_headless(vision, {}, writer);
  if (vision.flag("vision_use_head", true)) write_siglip_head(writer, "head.", vit);
  writer.enter("aligner.");
  write_projector(writer, "linear1", "linear2", vit.block.width, writer.width(), writer.width(), true);
  wrapper.take_error(vision);
}

void write_paddleocr_vl(KeyReader& wrapper, SpecWriter& writer) {
  KeyReader vision = wrapper.child("vision_config");
  const Vit vit = write_headless(
      vision, {.layers = 27, .width = 1152, .inner = 4304, .heads = 16, .image_size = 384, .patch_size = 14},
      writer);
  const std::int64_t merge = vision.count("spatial_merge_size", 64, 2);
  const std::int64_t merged = vit.block.width * merge * merge;
  writer.enter("projector.");
  writer.norm("pre_norm", vit.block.width, true);
  write_projector(writer, "linear_1", "linear_2", merged, merged, writer.width(), true);
  wrapper.take_error(vision);
}

void write_idefics2(KeyReader& wrapper, SpecWriter& writer) {
  KeyReader vision = wrapper.child("vision_config"), perceiver = wrapper.child("perceiver_config");
  const Vit vit = write_headless(vision, {.patch_size = 32}, writer);
  const std::int64_t inner =
      writer.spec().layers.empty() ? 0 : writer.spec().layers.front().ffn.intermediate_size;
  const std::int64_t width = perceiver.count("hidden_size", kMaxWidth, 4096);
  const std::int64_t head_dim = perceiver.count("resampler_head_dim", kMaxHeadDim, 96);
  const std::int64_t queries = head_dim * perceiver.count("resampler_n_heads", kMaxHeads, 16);
  const std::int64_t keys = head_dim * perceiver.count("num_key_value_heads", kMaxHeads, 4);
  const int depth = perceiver.count("resampler_depth", kMaxLayers, 3);
  writer.enter("connector.");
  writer.linear(kGroup, "modality_projection.gate_proj", inner, vit.block.width);
  writer.linear(kGroup, "modality_projection.up_proj", inner, vit.block.width);
  writer.linear(kGroup, "modality_projection.down_proj", writer.width(), inner);
  writer.enter("connector.perceiver_resampler.");
  writer.add(kGroup, "latents", {perceiver.count("resampler_n_latents", kMaxWidth, 64), width});
  for (int i = 0; i < depth; ++i) {
    const std::string at = fmt::format("layers.{}.", i);
    for (const char* norm : {"input_latents_norm", "input_context_norm", "post_attention_layernorm"})
      writer.norm(at + norm, width);
    writer.linear(kGroup, at + "self_attn.q_proj", queries, width);
    writer.linear(kGroup, at + "self_attn.k_proj", keys, width);
    writer.linear(kGroup, at + "self_attn.v_proj", keys, width);
    writer.linear(kGroup, at + "self_attn.o_proj", width, queries);
    writer.linear(kGroup, at + "mlp.gate_proj", 4 * width, width);
    writer.linear(kGroup, at + "mlp.up_proj", 4 * width, width);
    writer.linear(kGroup, at + "mlp.down_proj", width, 4 * width);
  }
  writer.norm("norm", width);
  wrapper.take_error(vision);
  wrapper.take_error(perceiver);
}

void write_ovis2(KeyReader& wrapper, SpecWriter& writer) {
  KeyReader vision = wrapper.child("vision_config");
  Vit vit = read_vit(
      vision, {.layers = 24, .width = 1024, .inner = 2816, .heads = 8, .image_size = 224, .patch_size = 14});
  const bool has_qkv_bias = vision.flag("qkv_bias", false);
  vit.block.has_qkv_bias = vit.block.has_output_bias = has_qkv_bias;
  vit.block.has_ffn_bias = vision.flag("mlp_bias", false);
  vit.block.has_norm_bias = false;
  vit.block.is_gated = true;
  const std::int64_t width = vit.block.width, stride = vision.count("hidden_stride", 64, 1);
  const std::int64_t words = vision.integer("vocab_size", 1, kMaxVocab, 16'384);
  const std::int64_t seen =
      std::max<std::int64_t>(1, words - vision.integer("num_visual_indicator_tokens", 0, kMaxVocab, 5));
  writer.enter("vision_tower.");
  write_patch_embedding(writer, "embeddings.patch_embedding", width, patch_elements(vit), true);
  writer.add(kGroup, "embeddings.position_embedding.weight", {vit.patches(), width});
  writer.norm("embeddings.rms_norm", width);
  write_vit_blocks(writer, "encoder.layers.", vit.layers, vit.block);
  writer.norm("rms_norm", width);
  // The tower speaks in words of a visual vocabulary, which has an embedding of its own.
  writer.linear(kGroup, "head_linear", seen, width * stride * stride);
  writer.norm("head_norm", seen, true);
  writer.enter("");
  // As wide as the wrapper's own hidden_size, which published configs give as the decoder's.
  writer.add(kGroup, "visual_embeddings_table.weight",
             {words, wrapper.count("hidden_size", kMaxWidth, 1536)});
  wrapper.take_error(vision);
}

void write_hunyuan_vl(KeyReader& wrapper, SpecWriter& writer) {
  KeyReader vision = wrapper.child("vision_config");
  Vit vit = read_vit(
      vision,
      {.layers = 27, .width = 1152, .inner = 4304, .heads = 16, .image_size = 2048, .patch_size = 16});
  const std::int64_t width = vit.block.width, out = writer.width();
  const std::int64_t merge = vision.count("spatial_merge_size", 64, 2);
  const std::int64_t side = vision.count("max_image_size", 1 << 16, 2048) / vit.patch_size;
  writer.enter("vision_tower.");
  write_patch_embedding(writer, "embeddings.patch_embedding", width, patch_elements(vit), true);
  writer.add(kGroup, "embeddings.position_embedding.weight", {side * side + 1, width});
  write_vit_blocks(writer, "layers.", vit.layers, vit.block);
  writer.enter("vision_tower.patch_merger.");
  writer.norm("before_rms", width);
  writer.norm("after_rms", out);
  writer.linear(kGroup, "proj_conv", 2 * width, width * merge * merge, true);
  writer.linear(kGroup, "proj_out", 4 * width, 2 * width, true);
  writer.linear(kGroup, "mlp", out, 4 * width, true);
  writer.add(kGroup, "image_newline", {4 * width});
  for (const char* name : {"image_begin", "image_end", "image_sep"}) writer.add(kGroup, name, {out});
  wrapper.take_error(vision);
}

void write_got_ocr2(KeyReader& wrapper, SpecWriter& writer) {
  KeyReader vision = wrapper.child("vision_config");
  write_sam(vision, writer);
  const std::int64_t in = vision.count("output_channels", kMaxWidth, 256), out = writer.width();
  writer.enter("multi_modal_projector.");
  writer.linear(kGroup, "conv_upsampler1", 2 * in, in * 3 * 3);
  writer.linear(kGroup, "conv_upsampler2", out, 2 * in * 3 * 3);
  writer.linear(kGroup, "multimodal_projector", out, out, true);
  wrapper.take_error(vision);
}

void write_internvl_chat(KeyReader& wrapper, SpecWriter& writer) {
  KeyReader vision = wrapper.child("vision_config");
  Vit vit = read_vit(
      vision,
      {.layers = 48, .width = 3200, .inner = 12'800, .heads = 25, .image_size = 224, .patch_size = 14});
  const std::int64_t width = vit.block.width;
  vit.block.has_qkv_bias = vision.flag("qkv_bias", false);
  vit.block.has_norm_bias = vision.text("norm_type", "rms_norm") != "rms_norm";
  writer.enter("vision_model.");
  writer.add(kGroup, "embeddings.class_embedding", {1, 1, width});
  writer.add(kGroup, "embeddings.position_embedding", {1, vit.patches() + 1, width});
  write_patch_embedding(writer, "embeddings.patch_embedding", width, patch_elements(vit), true);
  write_vit_blocks(writer, "encoder.layers.", vit.layers, vit.block);
  const bool has_qk_norms = vision.flag("qk_normalization", true);
  for (int i = 0; i < vit.layers; ++i) {
    const std::string at = fmt::format("encoder.layers.{}.", i);
    for (const char* scale : {"ls1", "ls2"}) writer.add(kGroup, at + scale, {width});
    if (!has_qk_norms) continue;
    for (const char* norm : {"attn.q_norm", "attn.k_norm"}) writer.norm(at + norm, width);
  }
  const double ratio = std::clamp(wrapper.positive("downsample_ratio", 0.5), 1.0 / 64, 1.0);
  const auto factor = static_cast<std::int64_t>(1.0 / ratio);
  const std::int64_t in = width * factor * factor;
  writer.enter("mlp1.");
  writer.norm("0", in, true);
  write_projector(writer, "1", "3", in, writer.width(), writer.width(), true);
  wrapper.take_error(vision);
}

// Learned queries read the patches in one attention of the decoder's width.
void write_minicpmv(KeyReader& wrapper, SpecWriter& writer) {
  KeyReader vision = wrapper.child("vision_config");
  const Vit vit = write_headless(
      vision, {.layers = 27, .width = 1152, .inner = 4304, .heads = 16, .image_size = 980, .patch_size = 14},
      writer, wrapper.flag("drop_vision_last_layer", false) ? 1 : 0);
  const std::int64_t out = writer.width();
  writer.enter("resampler.");
  writer.add(kGroup, "query", {wrapper.count("query_num", kMaxWidth, 64), out});
  if (vit.block.width != out) writer.linear(kGroup, "kv_proj", out, vit.block.width);
  writer.linear(kGroup, "attn.in_proj", 3 * out, out, true);
  writer.linear(kGroup, "attn.out_proj", out, out, true);
  for (const char* norm : {"ln_q", "ln_kv", "ln_post"}) writer.norm(norm, out, true);
  writer.add(kGroup, "proj", {out, out});
  wrapper.take_error(vision);
}

}  // namespace plimsoll::model
