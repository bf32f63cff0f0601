// SPDX-License-Identifier: Apache-2.0
// Llama 3.2 Vision: tiles with gated position embeddings, then two stacks of blocks, the second gated.
// Source: transformers' MllamaVisionConfig and MllamaVisionModel.
#include "model/families/towers.h"
#include "model/towers/vit.h"

namespace plimsoll::model {
namespace {

constexpr auto kGroup = WeightGroup::kEncoder;

}  // namespace

void write_mllama(KeyReader& wrapper, SpecWriter& writer) {
  KeyReader vision = wrapper.child("vision_config");
  Vit vit = read_vit(
      vision, {.layers = 32, .width = 1280, .inner = 5120, .heads = 16, .image_size = 448, .patch_size = 14});
  vit.block.has_qkv_bias = vit.block.has_output_bias = false;
  const std::int64_t width = vit.block.width, positions = vit.patches() + 1;
  const std::int64_t tiles = vision.count("max_num_tiles", 64, 4);
  const int global_layers = vision.count("num_global_layers", kMaxLayers, 8);
  const std::int64_t ratios = vision["supported_aspect_ratios"].is_array()
                                  ? static_cast<std::int64_t>(vision["supported_aspect_ratios"].size())
                                  : 8;
  writer.enter("vision_model.");
  writer.add(kGroup, "class_embedding", {width});
  write_patch_embedding(writer, "patch_embedding", width,
                        std::int64_t{vit.channels} * vit.patch_size * vit.patch_size, false);
  writer.add(kGroup, "gated_positional_embedding.gate", {1});
  writer.add(kGroup, "gated_positional_embedding.embedding", {positions, width});
  writer.add(kGroup, "gated_positional_embedding.tile_embedding.weight",
             {ratios + 1, tiles * positions * width});
  for (const char* name : {"pre_tile_positional_embedding", "post_tile_positional_embedding"}) {
    writer.add(kGroup, std::string(name) + ".gate", {1});
    writer.add(kGroup, std::string(name) + ".embedding.weight", {ratios + 1, tiles * width});
  }
  writer.norm("layernorm_pre", width, true);
  writer.norm("layernorm_post", width, true);
  write_vit_blocks(writer, "transformer.layers.", vit.layers, vit.block);
  write_vit_blocks(writer, "global_transformer.layers.", global_layers, vit.block);
  for (int i = 0; i < global_layers; ++i)
    for (const char* gate : {".gate_attn", ".gate_ffn"})
      writer.add(kGroup, "global_transformer.layers." + std::to_string(i) + gate, {1});
  const std::int64_t out = vision.count("vision_output_dim", kMaxWidth, 7680);
  writer.enter("");
  writer.linear(kGroup, "multi_modal_projector", writer.width(), out, true);
  wrapper.take_error(vision);
}

}  // namespace plimsoll::model
