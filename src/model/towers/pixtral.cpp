// SPDX-License-Identifier: Apache-2.0
// Towers with shapes of their own: Pixtral (Mistral 3, Ministral 3), Llama 4, Kimi K2.5, InternVL,
// Llama 3.2 Vision. Source: transformers' configs and modules of these names.
#include <algorithm>

#include "model/families/towers.h"
#include "model/towers/vit.h"

namespace plimsoll::model {
namespace {

constexpr auto kGroup = WeightGroup::kEncoder;

std::int64_t patch_elements(const Vit& vit) {
  return std::int64_t{vit.channels} * vit.patch_size * vit.patch_size;
}

Vit write_pixtral(KeyReader& vision, SpecWriter& writer, int patch_size = 16) {
  Vit vit = read_vit(vision, {.layers = 24,
                              .width = 1024,
                              .inner = 4096,
                              .heads = 16,
                              .image_size = 1024,
                              .patch_size = patch_size});
  vit.block = {.width = vit.block.width,
               .inner = vit.block.inner,
               .has_qkv_bias = false,
               .has_output_bias = false,
               .has_ffn_bias = false,
               .has_norm_bias = false,
               .is_gated = true};
  writer.enter("vision_tower.");
  write_patch_embedding(writer, "patch_conv", vit.block.width, patch_elements(vit), false);
  writer.norm("ln_pre", vit.block.width);
  write_vit_blocks(writer, "transformer.layers.", vit.layers, vit.block);
  return vit;
}

}  // namespace

void write_pixtral_llava(KeyReader& wrapper, SpecWriter& writer) {
  KeyReader vision = wrapper.child("vision_config");
  const Vit vit = write_pixtral(vision, writer);
  writer.enter("multi_modal_projector.");
  write_projector(writer, "linear_1", "linear_2", vit.block.width, writer.width(), writer.width(),
                  wrapper.flag("multimodal_projector_bias", true));
  wrapper.take_error(vision);
}

void write_mistral3(KeyReader& wrapper, SpecWriter& writer) {
  KeyReader vision = wrapper.child("vision_config");
  // The wrappers that merge patches assume their published tower where the config has none, as LightOn does.
  const Vit vit = write_pixtral(vision, writer, wrapper["vision_config"].is_null() ? 14 : 16);
  const std::int64_t merge = wrapper.count("spatial_merge_size", 64, 2);
  writer.enter("multi_modal_projector.");
  writer.norm("norm", vit.block.width);
  writer.linear(kGroup, "patch_merger.merging_layer", vit.block.width, vit.block.width * merge * merge);
  write_projector(writer, "linear_1", "linear_2", vit.block.width, writer.width(), writer.width(),
                  wrapper.flag("multimodal_projector_bias", false));
  wrapper.take_error(vision);
}

void write_llama4(KeyReader& wrapper, SpecWriter& writer) {
  KeyReader vision = wrapper.child("vision_config");
  const Vit vit = read_vit(
      vision, {.layers = 34, .width = 768, .inner = 5632, .heads = 16, .image_size = 448, .patch_size = 14});
  const std::int64_t width = vit.block.width;
  const std::int64_t inner = vision.count("intermediate_size", kMaxWidth, 5632);
  const std::int64_t projected = vision.count("projector_input_dim", kMaxWidth, 4096);
  const std::int64_t output = vision.count("projector_output_dim", kMaxWidth, 4096);
  const std::int64_t vision_output = vision.count("vision_output_dim", kMaxWidth, 7680);
  writer.enter("vision_model.");
  writer.add(kGroup, "class_embedding", {width});
  writer.add(kGroup, "positional_embedding_vlm", {vit.patches() + 1, width});
  writer.linear(kGroup, "patch_embedding.linear", width, patch_elements(vit));
  writer.norm("layernorm_pre", width, true);
  writer.norm("layernorm_post", width, true);
  write_vit_blocks(writer, "model.layers.", vit.layers, vit.block);
  writer.linear(kGroup, "vision_adapter.mlp.fc1", projected, inner);
  writer.linear(kGroup, "vision_adapter.mlp.fc2", output, projected);
  writer.enter("multi_modal_projector.");
  writer.linear(kGroup, "linear_1", writer.width(), vision_output);
  wrapper.take_error(vision);
}

void write_kimi_k25(KeyReader& wrapper, SpecWriter& writer) {
  KeyReader vision = wrapper.child("vision_config");
  VitBlock block;
  block.width =
      vision.count(vision.has("vt_hidden_size") ? "vt_hidden_size" : "hidden_size", kMaxWidth, 1152);
  block.inner = vision.count(
      vision.has("vt_intermediate_size") ? "vt_intermediate_size" : "intermediate_size", kMaxWidth, 4304);
  const int layers = vision.count(
      vision.has("vt_num_hidden_layers") ? "vt_num_hidden_layers" : "num_hidden_layers", kMaxLayers, 27);
  const std::int64_t patch = vision.count("patch_size", 1024, 14);
  std::int64_t merged = block.width;
  const Json& kernel = vision["merge_kernel_size"];
  for (std::size_t i = 0; i < 2; ++i)
    merged *=
        kernel.size() == 2 ? std::clamp<std::int64_t>(kernel.items()[i].as_integer().value_or(2), 1, 64) : 2;
  writer.enter("vision_tower.");
  write_patch_embedding(writer, "patch_embed.proj", block.width, 3 * patch * patch, true);
  writer.add(
      kGroup, "patch_embed.pos_emb.weight",
      {vision.count(vision.has("pos_emb_height") ? "pos_emb_height" : "init_pos_emb_height", kMaxWidth, 64),
       vision.count(vision.has("pos_emb_width") ? "pos_emb_width" : "init_pos_emb_width", kMaxWidth, 64),
       block.width});
  write_vit_blocks(writer, "encoder.blocks.", layers, block);
  writer.norm("encoder.final_layernorm", block.width, true);
  writer.enter("mm_projector.");
  // The published spelling is mm_hidden_size; without either it is the width that the tower's class assumes.
  writer.norm(
      "pre_norm",
      wrapper.count("projection_hidden_size", kMaxWidth, vision.count("mm_hidden_size", kMaxWidth, 1152)),
      true);
  write_projector(writer, "proj.0", "proj.2", merged, merged, writer.width(), true);
  wrapper.take_error(vision);
}

// No tower at all: patches of pixels are projected into the decoder.
void write_fuyu(KeyReader& wrapper, SpecWriter& writer) {
  const std::int64_t patch = wrapper.count("patch_size", 1024, 30);
  const std::int64_t channels = wrapper.count("num_channels", 64, 3);
  writer.enter("");
  writer.linear(kGroup, "vision_embed_tokens", writer.width(), patch * patch * channels, true);
}

void write_internvl(KeyReader& wrapper, SpecWriter& writer) {
  KeyReader vision = wrapper.child("vision_config");
  Vit vit = read_vit(
      vision, {.layers = 24, .width = 1024, .inner = 4096, .heads = 16, .image_size = 448, .patch_size = 14});
  const std::int64_t width = vit.block.width;
  const bool has_rms = vision.text("norm_type", "layer_norm") == "rms_norm";
  vit.block.has_qkv_bias = vision.flag("attention_bias", false);
  vit.block.has_norm_bias = !has_rms;
  writer.enter("vision_tower.");
  writer.add(kGroup, "embeddings.cls_token", {1, 1, width});
  if (vision.flag("use_mask_token", false)) writer.add(kGroup, "embeddings.mask_token", {1, 1, width});
  if (vision.flag("use_absolute_position_embeddings", true))
    writer.add(kGroup, "embeddings.position_embeddings", {1, vit.patches() + 1, width});
  write_patch_embedding(writer, "embeddings.patch_embeddings.projection", width, patch_elements(vit), true);
  write_vit_blocks(writer, "encoder.layer.", vit.layers, vit.block);
  for (int i = 0; i < vit.layers; ++i) {
    const std::string at = "encoder.layer." + std::to_string(i) + ".";
    writer.add(kGroup, at + "lambda_1", {width});
    writer.add(kGroup, at + "lambda_2", {width});
    if (!vision.flag("use_qk_norm", false)) continue;
    writer.norm(at + "attention.q_norm", width);
    writer.norm(at + "attention.k_norm", width);
  }
  if (!vision.flag("use_mean_pooling", true)) writer.norm("layernorm", width, true);
  const double ratio = std::clamp(wrapper.positive("downsample_ratio", 0.5), 1.0 / 64, 64.0);
  const auto factor = static_cast<std::int64_t>(1.0 / ratio);
  const std::int64_t in = width * factor * factor;
  writer.enter("multi_modal_projector.");
  writer.norm("layer_norm", in, true);
  write_projector(writer, "linear_1", "linear_2", in, writer.width(), writer.width(), true);
  wrapper.take_error(vision);
}

}  // namespace plimsoll::model
