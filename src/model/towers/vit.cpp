// SPDX-License-Identifier: Apache-2.0
#include "model/towers/vit.h"

#include <fmt/format.h>

#include <algorithm>

namespace plimsoll::model {
namespace {

constexpr auto kGroup = WeightGroup::kEncoder;
constexpr std::int64_t kMaxImage = 1 << 16;  // pixels a side

// A number, or the first of a list of sides.
int read_side(KeyReader& vision, std::string_view key, int otherwise) {
  const Json& value = vision[key];
  if (value.is_array() && value.size() > 0)
    if (const auto side = value.items()[0].as_integer(); side && *side > 0 && *side <= kMaxImage)
      return static_cast<int>(*side);
  return vision.count(key, kMaxImage, otherwise);
}

}  // namespace

std::int64_t Vit::patches() const {
  const std::int64_t side = image_size / std::max(1, patch_size);
  return side * side;
}

Vit read_vit(KeyReader& vision, const VitDefaults& defaults) {
  Vit vit;
  vit.layers = vision.count("num_hidden_layers", kMaxLayers, defaults.layers);
  vit.block.width = vision.count("hidden_size", kMaxWidth, defaults.width);
  vit.block.inner = vision.count("intermediate_size", kMaxWidth, defaults.inner);
  vit.image_size = read_side(vision, "image_size", defaults.image_size);
  vit.patch_size = read_side(vision, "patch_size", defaults.patch_size);
  vit.channels = vision.count("num_channels", 64, 3);
  return vit;
}

void write_vit_blocks(SpecWriter& writer, std::string_view prefix, int layers, const VitBlock& block) {
  const std::int64_t kv_width = block.kv_width > 0 ? block.kv_width : block.width;
  for (int i = 0; i < layers; ++i) {
    const std::string at = fmt::format("{}{}.", prefix, i);
    for (const char* norm : {"norm1", "norm2"}) writer.norm(at + norm, block.width, block.has_norm_bias);
    writer.linear(kGroup, at + "attn.q", block.width, block.width, block.has_qkv_bias);
    writer.linear(kGroup, at + "attn.k", kv_width, block.width, block.has_qkv_bias && block.has_key_bias);
    writer.linear(kGroup, at + "attn.v", kv_width, block.width, block.has_qkv_bias);
    writer.linear(kGroup, at + "attn.proj", block.width, block.width, block.has_output_bias);
    if (block.is_gated) writer.linear(kGroup, at + "mlp.gate", block.inner, block.width, block.has_ffn_bias);
    writer.linear(kGroup, at + "mlp.fc1", block.inner, block.width, block.has_ffn_bias);
    writer.linear(kGroup, at + "mlp.fc2", block.width, block.inner, block.has_ffn_bias);
  }
}

void write_patch_embedding(SpecWriter& writer, std::string_view name, std::int64_t width,
                           std::int64_t elements_per_patch, bool has_bias) {
  writer.add(kGroup, std::string(name) + ".weight", {width, elements_per_patch});
  if (has_bias) writer.add(kGroup, std::string(name) + ".bias", {width});
}

void write_siglip_head(SpecWriter& writer, const std::string& prefix, const Vit& vit) {
  const std::int64_t width = vit.block.width;
  writer.add(kGroup, prefix + "probe", {1, 1, width});
  writer.linear(kGroup, prefix + "attention.in_proj", 3 * width, width, true);
  writer.linear(kGroup, prefix + "attention.out_proj", width, width, true);
  writer.norm(prefix + "layernorm", width, true);
  write_projector(writer, prefix + "mlp.fc1", prefix + "mlp.fc2", width, vit.block.inner, width, true);
}

void write_projector(SpecWriter& writer, std::string_view first, std::string_view second, std::int64_t in,
                     std::int64_t middle, std::int64_t out, bool has_bias) {
  writer.linear(kGroup, first, middle, in, has_bias);
  writer.linear(kGroup, second, out, middle, has_bias);
}

}  // namespace plimsoll::model
