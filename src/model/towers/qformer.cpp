// SPDX-License-Identifier: Apache-2.0
#include "model/towers/qformer.h"

#include <fmt/format.h>

#include "model/families/towers.h"
#include "model/towers/vit.h"

namespace plimsoll::model {
namespace {

constexpr auto kGroup = WeightGroup::kEncoder;

// Attention and its output, then a norm. `read` is the width that keys and values see.
void write_half(SpecWriter& writer, const std::string& at, std::int64_t width, std::int64_t read) {
  writer.linear(kGroup, at + "attention.query", width, width, true);
  writer.linear(kGroup, at + "attention.key", width, read, true);
  writer.linear(kGroup, at + "attention.value", width, read, true);
  writer.linear(kGroup, at + "output.dense", width, width, true);
  writer.norm(at + "output.LayerNorm", width, true);
}

}  // namespace

std::int64_t write_qformer(KeyReader& qformer, const std::string& prefix, SpecWriter& writer) {
  const std::int64_t width = qformer.count("hidden_size", kMaxWidth, 768);
  const std::int64_t inner = qformer.count("intermediate_size", kMaxWidth, 3072);
  const std::int64_t encoder = qformer.count("encoder_hidden_size", kMaxWidth, 1408);
  const int layers = qformer.count("num_hidden_layers", kMaxLayers, 12);
  const int frequency = qformer.count("cross_attention_frequency", kMaxLayers, 2);
  writer.norm(prefix + "layernorm", width, true);
  for (int i = 0; i < layers; ++i) {
    const std::string at = fmt::format("{}encoder.layer.{}.", prefix, i);
    write_half(writer, at + "attention.", width, width);
    if (i % frequency == 0) write_half(writer, at + "crossattention.", width, encoder);
    write_projector(writer, at + "intermediate_query.dense", at + "output_query.dense", width, inner, width,
                    true);
    writer.norm(at + "output_query.LayerNorm", width, true);
  }
  return width;
}

void write_blip2(KeyReader& wrapper, SpecWriter& writer) {
  KeyReader vision = wrapper.child("vision_config"), qformer = wrapper.child("qformer_config");
  if (qformer.flag("use_qformer_text_input", false))
    wrapper.add_error(ErrorCode::kUnsupported, "qformer_config",
                      "reading the model: a querying transformer that reads text is not known here");
  Vit vit = read_vit(
      vision, {.layers = 39, .width = 1408, .inner = 6144, .heads = 16, .image_size = 224, .patch_size = 14});
  vit.block.has_qkv_bias = vision.flag("qkv_bias", true);
  const std::int64_t width = vit.block.width;
  writer.enter("vision_model.");
  writer.add(kGroup, "embeddings.class_embedding", {1, 1, width});
  writer.add(kGroup, "embeddings.position_embedding", {1, vit.patches() + 1, width});
  write_patch_embedding(writer, "embeddings.patch_embedding", width,
                        std::int64_t{vit.channels} * vit.patch_size * vit.patch_size, true);
  write_vit_blocks(writer, "encoder.layers.", vit.layers, vit.block);
  writer.norm("post_layernorm", width, true);
  writer.enter("");
  const std::int64_t queried = write_qformer(qformer, "qformer.", writer);
  writer.add(kGroup, "query_tokens", {1, wrapper.count("num_query_tokens", kMaxWidth, 32), queried});
  writer.linear(kGroup, "language_projection", writer.width(), queried, true);
  wrapper.take_error(vision);
  wrapper.take_error(qformer);
}

}  // namespace plimsoll::model
