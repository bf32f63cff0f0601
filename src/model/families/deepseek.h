// SPDX-License-Identifier: Apache-2.0
// DeepSeek's shape, which Kimi K2, GLM 5 and others share: latent attention, a dense prefix, a mixture with
// shared experts, prediction layers behind. The parts a relative changes are arguments. Pure.
#pragma once

#include "model/families/decoder.h"

namespace plimsoll::model {

/// transformers' classes give the norms of compressed vectors their own default, whatever rms_norm_eps says.
inline constexpr double kCompressedNormEps = 1e-6;

/// The figures of latent attention, for as many query heads as the spec's layers have. The scale is not set
/// yet. Errors are kept in `keys`.
Latent read_latent(KeyReader& keys, const ModelSpec& spec);
/// 1 / sqrt(nope + rope); where yarn names mscale_all_dim, times the square of its factor.
double latent_scale(const Latent& latent, const RopeSpec& rope);
/// Gives every layer this latent attention with its scale; what turns is its share of a head.
void set_latent(Latent latent, ModelSpec& spec);
/// The indexer of sparse latent attention; `otherwise` where the config has no index_* keys of its own.
std::optional<Indexer> read_indexer(KeyReader& keys);

/// Lists prediction layers as DeepSeek-V3's files hold them: norms and a projection in front of a layer like
/// the last one, with an embedding and a head of their own unless `shares_ends`. `count` of them behind the
/// decoder.
void write_mtp_layers(SpecWriter& writer, const Layer& layer, int count, const DecoderStyle& style,
                      bool shares_ends = false);
/// Which pairs turn: neighbours unless rope_interleave says otherwise.
void read_rope_pairs(KeyReader& keys, ModelSpec& spec);
/// Biases of the compressions and of the output where attention_bias says so.
LatentStyle read_latent_bias(KeyReader& keys);

}  // namespace plimsoll::model
