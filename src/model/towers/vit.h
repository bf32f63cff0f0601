// SPDX-License-Identifier: Apache-2.0
// What most vision towers share: blocks of attention and a feed-forward of one width. A tower names what
// stands around them. Everything it lists belongs to the group of encoders. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "model/families/spec_writer.h"
#include "model/key_reader.h"

namespace plimsoll::model {

/// One block, the same for all of a tower.
struct VitBlock {
  std::int64_t width = 0, inner = 0;
  std::int64_t kv_width = 0;  // of keys and values; 0: as wide as the rest
  bool has_qkv_bias = true, has_key_bias = true, has_output_bias = true;
  bool has_ffn_bias = true, has_norm_bias = true;
  bool is_gated = false;  // three matrices in the feed-forward
};

/// What transformers assumes where a vision_config is silent.
struct VitDefaults {
  int layers = 12, width = 768, inner = 3072, heads = 12, image_size = 224, patch_size = 16;
};
/// The figures of CLIP's, SigLIP's and their relatives' configs.
struct Vit {
  int layers = 0, image_size = 0, patch_size = 0, channels = 3;
  VitBlock block;
  std::int64_t patches() const;  // of a square image: (image_size / patch_size)^2
};
Vit read_vit(KeyReader& vision, const VitDefaults& defaults);

/// PREFIX0., PREFIX1., ...: `layers` blocks with q, k, v apart (their count is that of fused ones).
void write_vit_blocks(SpecWriter& writer, std::string_view prefix, int layers, const VitBlock& block);

/// A convolution over patches: PREFIX.weight [width, channels, ...], PREFIX.bias.
void write_patch_embedding(SpecWriter& writer, std::string_view name, std::int64_t width,
                           std::int64_t elements_per_patch, bool has_bias);

/// SigLIP's pooling head: a probe that attends to the features, and a feed-forward.
void write_siglip_head(SpecWriter& writer, const std::string& prefix, const Vit& vit);

/// Two linear layers: NAME_1 [middle, in], NAME_2 [out, middle].
void write_projector(SpecWriter& writer, std::string_view first, std::string_view second, std::int64_t in,
                     std::int64_t middle, std::int64_t out, bool has_bias);

}  // namespace plimsoll::model
