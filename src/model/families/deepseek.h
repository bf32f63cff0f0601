// SPDX-License-Identifier: Apache-2.0
// DeepSeek's shape, which Kimi K2, GLM 5 and others share: latent attention, a dense prefix, a mixture with
// shared experts, prediction layers behind. The parts a relative changes are arguments. Pure.
#pragma once

#include "model/families/decoder.h"

namespace plimsoll::model {

/// The figures of latent attention. Errors are kept in `keys`.
Latent read_latent(KeyReader& keys, int q_heads);
/// The indexer of sparse latent attention; `otherwise` where the config has no index_* keys of its own.
std::optional<Indexer> read_indexer(KeyReader& keys);

/// Lists prediction layers as DeepSeek-V3's files hold them: norms and a projection in front of a layer like
/// the last one, with an embedding and a head of their own unless `shares_ends`. `count` of them behind the
/// decoder.
void write_mtp_layers(SpecWriter& writer, const Layer& layer, int count, const DecoderStyle& style,
                      bool shares_ends = false);
/// Biases of the compressions and of the output where attention_bias says so.
LatentStyle read_latent_bias(KeyReader& keys);

}  // namespace plimsoll::model
