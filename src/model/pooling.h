// SPDX-License-Identifier: Apache-2.0
// What becomes of the hidden states of a model that gives one vector for a text? Read from the class and, in
// folders of Sentence Transformers, from their module files. Pure. Source: docs/formats/embedding_models.md.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "artifact/artifact.h"
#include "base/json.h"

namespace plimsoll::model {

struct ModelSpec;

/// Which of a text's hidden states, behind the last norm, make its embedding.
enum class PoolingKind {
  kLast,
  kFirst,
  kMean,
  kMeanOfRoot,    // the sum over the root of the length
  kWeightedMean,  // position p, from 0, weighs p + 1
  kMax,           // the largest value of each dimension
};
/// lasttoken cls mean mean_sqrt_len_tokens weightedmean max: Sentence Transformers' names.
std::string_view to_string(PoolingKind kind);

struct Pooling {
  PoolingKind kind = PoolingKind::kLast;
  bool is_normalized = true;                  // to a length of 1
  bool has_shorter_ones = false;              // a leading part of the embedding serves as one (Matryoshka)
  std::int64_t longest_tokens = 0;            // that a text may have; 0: as the model
  std::vector<std::int64_t> dimensions = {};  // that such parts may have; empty: any
  std::string problem = {}, where = {};       // why it is not computed here; empty when it is
  bool operator==(const Pooling&) const = default;
};

/// What vLLM takes for a class that gives embeddings without a file that says how: the first token for
/// encoders, the last for decoders without a head. Nothing for all others.
/// `is_decoder_without_head`: the architecture is a known decoder's, ending in Model.
std::optional<Pooling> pooling_of_class(std::string_view architecture, bool is_decoder_without_head);

/// Completes a spec by the files of its folder, or by GGUF's pooling_type: pooling, longest input, and the
/// names that a checkpoint without a head gives its tensors. What is wrong with the files, or not computed,
/// is kept as the pooling's problem.
void read_pooling_files(const artifact::Artifact& artifact, ModelSpec& spec);

}  // namespace plimsoll::model
