// SPDX-License-Identifier: Apache-2.0
// Wrappers around CLIP's and SigLIP's towers: LLaVA and its successors, Gemma 3, PaliGemma, Aya Vision,
// Idefics 3 and SmolVLM, LFM2-VL. Source: transformers' CLIPVisionConfig, SiglipVisionConfig,
// Siglip2VisionConfig and the wrappers' own modules.
#include "model/families/towers.h"
#include "model/towers/vit.h"

namespace plimsoll::model {
namespace {

constexpr auto kGroup = WeightGroup::kEncoder;
constexpr VitDefaults kSiglip{};
constexpr VitDefaults kClip{.patch_size = 32};
// The tower of LLaVA's published weights, which its config class assumes.
constexpr VitDefaults kLlavaClip{
    .layers = 24, .width = 1024, .inner = 4096, .heads = 16, .image_size = 336, .patch_size = 14};

std::int64_t patch_elements(const Vit& vit) {
  return std::int64_t{vit.channels} * vit.patch_size * vit.patch_size;
}

// `positions`: rows of the position embedding.
void write_siglip(KeyReader& vision, const Vit& vit, std::int64_t positions, SpecWriter& writer) {
  writer.enter("vision_tower.");
  const std::int64_t width = vit.block.width;
  write_patch_embedding(writer, "embeddings.patch_embedding", width, patch_elements(vit), true);
  writer.add(kGroup, "embeddings.position_embedding.weight", {positions, width});
  write_vit_blocks(writer, "encoder.layers.", vit.layers, vit.block);
  writer.norm("post_layernorm", width, true);
  if (vision.flag("vision_use_head", true)) write_siglip_head(writer, "head.", vit);
}

void write_clip(const Vit& vit, SpecWriter& writer, const char* prefix = "vision_tower.") {
  writer.enter(prefix);
  const std::int64_t width = vit.block.width;
  writer.add(kGroup, "embeddings.class_embedding", {width});
  write_patch_embedding(writer, "embeddings.patch_embedding", width, patch_elements(vit), false);
  writer.add(kGroup, "embeddings.position_embedding.weight", {vit.patches() + 1, width});
  writer.norm("pre_layrnorm", width, true);
  write_vit_blocks(writer, "encoder.layers.", vit.layers, vit.block);
  writer.norm("post_layernorm", width, true);
}

// SigLIP or CLIP, as the vision_config's own model_type says. Returns the tower's width.
std::int64_t write_by_type(KeyReader& wrapper, const VitDefaults& clip, SpecWriter& writer) {
  KeyReader vision = wrapper.child("vision_config");
  const std::string type = vision.text("model_type", "clip_vision_model");
  const bool is_siglip = type.starts_with("siglip");
  const bool is_absent = wrapper["vision_config"].is_null();
  const Vit vit = read_vit(vision, is_siglip ? kSiglip : is_absent ? clip : kClip);
  if (is_siglip)
    write_siglip(vision, vit, vit.patches(), writer);
  else
    write_clip(vit, writer);
  if (!is_siglip && type != "clip_vision_model") {
    wrapper.add_error(ErrorCode::kUnsupported, "vision_config",
                      "reading the model: the vision tower \"" + type + "\" is not known here");
  }
  wrapper.take_error(vision);
  return vit.block.width;
}

// LLaVA concatenates the features of several layers where it takes more than one.
std::int64_t feature_layers(const KeyReader& wrapper, std::int64_t otherwise) {
  const Json& layers = wrapper["vision_feature_layer"];
  if (layers.is_array() && layers.size() > 0) return static_cast<std::int64_t>(layers.size());
  return layers.is_null() ? otherwise : 1;
}

void write_llava_projector(KeyReader& wrapper, std::int64_t width, SpecWriter& writer) {
  writer.enter("multi_modal_projector.");
  write_projector(writer, "linear_1", "linear_2", width * feature_layers(wrapper, 1), writer.width(),
                  writer.width(), wrapper.flag("multimodal_projector_bias", true));
}

}  // namespace

void write_llava(KeyReader& wrapper, SpecWriter& writer) {
  KeyReader vision = wrapper.child("vision_config");
  if (vision.text("model_type", "") == "pixtral") return write_pixtral_llava(wrapper, writer);
  write_llava_projector(wrapper, write_by_type(wrapper, kLlavaClip, writer), writer);
}

void write_vipllava(KeyReader& wrapper, SpecWriter& writer) {
  const std::int64_t in = write_by_type(wrapper, kLlavaClip, writer) * feature_layers(wrapper, 5);
  writer.enter("multi_modal_projector.");
  writer.norm("projector_layernorm", in, true);
  write_projector(writer, "linear_1", "linear_2", in, writer.width(), writer.width(), true);
}

void write_video_llava(KeyReader& wrapper, SpecWriter& writer) {
  // Two towers of one kind: images and the frames of videos.
  std::int64_t width = 0;
  for (const char* prefix : {"image_tower.", "video_tower."}) {
    KeyReader vision = wrapper.child("vision_config");
    const Vit vit = read_vit(
        vision,
        {.layers = 24, .width = 1024, .inner = 4096, .heads = 16, .image_size = 224, .patch_size = 14});
    write_clip(vit, writer, prefix);
    width = vit.block.width;
    wrapper.take_error(vision);
  }
  write_llava_projector(wrapper, width, writer);
}

void write_llava_next(KeyReader& wrapper, SpecWriter& writer) {
  write_llava(wrapper, writer);
  writer.enter("");
  writer.add(kGroup, "image_newline", {writer.width()});
}

void write_gemma3(KeyReader& wrapper, SpecWriter& writer) {
  KeyReader vision = wrapper.child("vision_config");
  const Vit vit = read_vit(vision, kSiglip);
  write_siglip(vision, vit, vit.patches(), writer);
  writer.enter("multi_modal_projector.");
  writer.add(kGroup, "mm_input_projection_weight", {vit.block.width, writer.width()});
  writer.norm("mm_soft_emb_norm", vit.block.width);
  wrapper.take_error(vision);
}

void write_paligemma(KeyReader& wrapper, SpecWriter& writer) {
  KeyReader vision = wrapper.child("vision_config");
  const Vit vit = read_vit(
      vision, {.layers = 27, .width = 1152, .inner = 4304, .heads = 16, .image_size = 224, .patch_size = 14});
  write_siglip(vision, vit, vit.patches(), writer);
  const int projected =
      vision.count("projection_dim", kMaxWidth, wrapper.count("projection_dim", kMaxWidth, 2048));
  writer.enter("multi_modal_projector.");
  writer.linear(kGroup, "linear", projected, vit.block.width, true);
  wrapper.take_error(vision);
}

void write_aya_vision(KeyReader& wrapper, SpecWriter& writer) {
  KeyReader vision = wrapper.child("vision_config");
  const Vit vit = read_vit(
      vision, {.layers = 27, .width = 1152, .inner = 4304, .heads = 16, .image_size = 364, .patch_size = 14});
  write_siglip(vision, vit, vit.patches(), writer);
  const std::int64_t factor = wrapper.count("downsample_factor", 64, 2);
  const std::int64_t middle = wrapper.count("alignment_intermediate_size", kMaxWidth, writer.width());
  const std::int64_t in = vit.block.width * factor * factor;
  writer.enter("multi_modal_projector.");
  writer.norm("layernorm", in, true);
  writer.linear(kGroup, "linear_1", middle, in, true);
  writer.linear(kGroup, "linear_2", writer.width(), middle / 2, true);  // half of it gates the other half
  wrapper.take_error(vision);
}

void write_cohere2_vision(KeyReader& wrapper, SpecWriter& writer) {
  KeyReader vision = wrapper.child("vision_config");
  const Vit vit = read_vit(
      vision, wrapper["vision_config"].is_null()
                  ? VitDefaults{.layers = 27, .width = 1152, .inner = 3072, .heads = 12, .image_size = 512}
                  : kSiglip);
  write_siglip(vision, vit, vit.patches(), writer);
  const std::int64_t factor = wrapper.count("downsample_factor", 64, 2);
  const std::int64_t middle = wrapper.count("alignment_intermediate_size", kMaxWidth, 36'864);
  writer.enter("multi_modal_projector.");
  writer.linear(kGroup, "linear_1", middle, vit.block.width * factor * factor, true);
  writer.linear(kGroup, "linear_2", writer.width(), middle / 2, true);  // half of it gates the other half
  wrapper.take_error(vision);
}

void write_idefics3(KeyReader& wrapper, SpecWriter& writer) {
  KeyReader vision = wrapper.child("vision_config");
  const Vit vit = read_vit(
      vision, {.layers = 12, .width = 1152, .inner = 3072, .heads = 16, .image_size = 224, .patch_size = 32});
  writer.enter("vision_model.");
  write_patch_embedding(writer, "embeddings.patch_embedding", vit.block.width, patch_elements(vit), true);
  writer.add(kGroup, "embeddings.position_embedding.weight", {vit.patches(), vit.block.width});
  write_vit_blocks(writer, "encoder.layers.", vit.layers, vit.block);
  writer.norm("post_layernorm", vit.block.width, true);
  const std::int64_t factor = wrapper.count("scale_factor", 64, 2);
  writer.enter("connector.");
  writer.linear(kGroup, "modality_projection.proj", writer.width(), vit.block.width * factor * factor);
  wrapper.take_error(vision);
}

void write_lfm2_vl(KeyReader& wrapper, SpecWriter& writer) {
  KeyReader vision = wrapper.child("vision_config");
  const Vit vit = read_vit(vision, kSiglip);
  const std::int64_t width = vit.block.width, factor = wrapper.count("downsample_factor", 64, 2);
  write_siglip(vision, vit, vision.integer("num_patches", 1, kMaxWidth, 256), writer);
  const std::int64_t in = width * factor * factor;
  writer.enter("multi_modal_projector.");
  if (wrapper.flag("projector_use_layernorm", true)) writer.norm("layer_norm", in, true);
  write_projector(writer, "linear_1", "linear_2", in, wrapper.count("projector_hidden_size", kMaxWidth, 2560),
                  writer.width(), wrapper.flag("projector_bias", true));
  wrapper.take_error(vision);
}

void write_minimax_m3_vl(KeyReader& wrapper, SpecWriter& writer) {
  KeyReader vision = wrapper.child("vision_config");
  const Vit vit = read_vit(
      vision,
      {.layers = 32, .width = 1280, .inner = 5120, .heads = 16, .image_size = 2016, .patch_size = 14});
  KeyReader merging = vision.child("img_token_compression_config");
  const std::int64_t merged = merging.count("spatial_merge_size", 64, 2);
  const std::int64_t frames = merging.count("temporal_patch_size", 64, 2);
  const std::int64_t out = writer.width();
  const std::int64_t middle = wrapper.count("projector_hidden_size", kMaxWidth, out);
  const bool has_bias = wrapper.flag("multimodal_projector_bias", true);
  writer.enter("vision_tower.vision_model.");
  write_patch_embedding(writer, "embeddings.patch_embedding", vit.block.width, patch_elements(vit) * frames,
                        false);
  writer.norm("pre_layrnorm", vit.block.width, true);
  write_vit_blocks(writer, "encoder.layers.", vit.layers, vit.block);
  writer.enter("");
  write_projector(writer, "multi_modal_projector.linear_1", "multi_modal_projector.linear_2", vit.block.width,
                  middle, out, has_bias);
  write_projector(writer, "patch_merge_mlp.linear_1", "patch_merge_mlp.linear_2", out * merged * merged,
                  middle, out, has_bias);
  vision.take_error(merging);
  wrapper.take_error(vision);
}

}  // namespace plimsoll::model
