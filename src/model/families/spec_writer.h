// SPDX-License-Identifier: Apache-2.0
// Lists the weights of a spec, part by part, in the order of the forward pass. A family walks its layers and
// names what stands in them; shapes follow from the spec's own figures. Names are those of published
// checkpoints where ModelSpec::has_file_names says so. Borrows the spec; single thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/model.h"

namespace plimsoll::model {

/// A role where the weight is there.
inline std::optional<Role> role_if(bool is_there, Role role) {
  return is_there ? std::optional(role) : std::nullopt;
}

class SpecWriter {
 public:
  explicit SpecWriter(ModelSpec& spec) : spec_(spec) {}

  /// Where the next weights stand: "model.layers.3." and layer 3, or "vision_tower." and none.
  void enter(std::string prefix, int layer = -1);
  /// While on, everything belongs to `group` whatever the parts say: prediction layers, encoders.
  void override_group(WeightGroup group) { forced_ = group; }
  void end_override() { forced_.reset(); }

  /// A weight that is no more than a shape; `name` follows the prefix.
  Weight& add(WeightGroup group, std::string_view name, std::vector<std::int64_t> shape);
  /// NAME.weight [out, in] of a linear layer, and NAME.bias [out].
  void linear(WeightGroup group, std::string_view name, std::int64_t out, std::int64_t in,
              bool has_bias = false);
  /// As many linear layers without bias as `copies`; `name` holds "{}" for the number.
  void linears(WeightGroup group, std::string_view name, std::int64_t out, std::int64_t in, int copies);
  /// As many of a role as `copies`: experts; `name` holds "{}" for the number.
  void experts_as(Role role, std::string_view name, std::int64_t out, std::int64_t in, int copies);
  /// NAME.weight [width], and NAME.bias [width].
  void norm(std::string_view name, std::int64_t width, bool has_bias = false);
  /// A weight that the engine uses, under its usual names in both formats.
  Weight& role(Role role, std::vector<std::int64_t> shape);
  /// The same under another name in Hugging Face's files; `name` follows the prefix.
  Weight& role_as(Role role, std::string_view name, std::vector<std::int64_t> shape);
  /// NAME.weight [out, in] of a linear layer, and NAME.bias [out] when there is a role for it.
  void linear_as(Role role, std::string_view name, std::int64_t out, std::int64_t in,
                 std::optional<Role> bias = {});
  /// NAME.weight [width], and NAME.bias [width] when there is a role for it.
  void norm_as(Role role, std::string_view name, std::int64_t width, std::optional<Role> bias = {});

  const ModelSpec& spec() const { return spec_; }
  ModelSpec& spec() { return spec_; }
  std::int64_t width() const { return spec_.hidden_size; }

 private:
  ModelSpec& spec_;
  std::string prefix_;
  int layer_ = -1;
  std::optional<WeightGroup> forced_;
};

/// q, k, v, o with the biases and per-head norms that `attention` has, under self_attn. Widths that are not
/// hidden_size (Zamba's doubled input) are given: `input` is what q, k, v read, `output` what o writes.
void write_attention(SpecWriter& writer, const Attention& attention);
void write_attention(SpecWriter& writer, const Attention& attention, std::int64_t input, std::int64_t output);

/// Options of latent attention that the spec does not hold.
struct LatentStyle {
  bool has_q_bias = false;  // q_a and kv_a projections (attention_bias)
  bool has_output_bias = false;
  bool has_halves = false;  // the expansion as GGUF keeps it: a matrix for keys and one for values, by head
  std::string_view prefix = "self_attn.";
};
/// q (compressed or not), compressed kv, their norms, o, and the indexer where there is one.
void write_latent(SpecWriter& writer, const Latent& latent, const LatentStyle& style = {});

/// gate, up, down under mlp (or up, down when it is not gated).
void write_ffn(SpecWriter& writer, const Ffn& ffn);
/// One gated feed-forward of that width under another prefix: "mlp.shared_experts.".
void write_gated(SpecWriter& writer, WeightGroup group, std::string_view prefix, std::int64_t inner,
                 bool is_gated = true, bool has_bias = false);

/// Options of a mixture of experts that the spec does not hold.
struct MoeStyle {
  std::string_view router = "mlp.gate";
  std::string_view experts = "mlp.experts.";        // then "{}.gate_proj"
  std::string_view shared = "mlp.shared_experts.";  // the shared experts as one
  bool has_stacked_experts = false;                 // one tensor of all gates and ups, one of all downs
  bool has_router_bias = false;                     // a bias of the router's linear layer
  bool has_shared_gate = false;                     // mlp.shared_expert_gate [1, width]
  std::string_view score_bias = "";  // a buffer [experts] that corrects the scores; no parameter
};
void write_moe(SpecWriter& writer, const Ffn& ffn, const MoeStyle& style = {});

/// Dense, mixture or nothing, as the layer says.
void write_any_ffn(SpecWriter& writer, const Ffn& ffn, const MoeStyle& style = {});

}  // namespace plimsoll::model
