// SPDX-License-Identifier: Apache-2.0
// What would a checkpoint hold, by the config alone? Each weight in the scheme that is declared for it, as
// stored_tensors.h lists its tensors. An answer where no files are at hand; with files, their headers say it.
// Pure functions.
#pragma once

#include <cstdint>
#include <optional>

#include "base/units.h"
#include "memory/stored_tensors.h"
#include "model/model.h"
#include "model/quantization.h"

namespace plimsoll::memory {

/// What a checkpoint of this model would hold, as its config declares it.
struct StoredCheckpoint {
  Bytes bytes;
  Bytes within;               // more or less; 0 where the sum is exact
  std::int64_t elements = 0;  // as the hub shows them: codes as stored, a byte of gpt-oss's blocks as two
  std::int64_t scales = 0;    // companions
  std::int64_t single_scales = 0;  // those of one number for each matrix
  std::int64_t block_scales = 0;   // companions of gpt-oss's blocks
  std::int64_t packed = 0;         // codes as stored less the weights that they hold
  std::int64_t mtp = 0;            // weights of prediction layers
  std::int64_t buffers = 0;        // stored, but no parameters
};

/// Whether the declaration speaks of keys and values alone, and the weights are plain.
bool is_for_cache_alone(const model::Quantization& quantization);

/// Nothing when it cannot be known: weights of some part that are not listed, layouts without a formula,
/// patterns that name modules by other names than the spec's, or more of them than can be tried.
std::optional<StoredCheckpoint> stored_checkpoint(const model::ModelSpec& spec,
                                                  const std::optional<model::Quantization>& quantization);

/// Which matrices of the decoder a converter takes; routers, indexers and the head stay in any case.
/// Source: modelopt's NVFP4_EXPERTS_ONLY_CFG, NVFP4_MLP_ONLY_CFG, NVFP4_OMLP_ONLY_CFG, NVFP4_DEFAULT_CFG.
enum class Recipe { kExperts, kFeedForward, kFeedForwardAndOutput, kAllLinear };

/// The same where that recipe is followed, whatever the config declares.
std::optional<StoredCheckpoint> checkpoint_by_recipe(const model::ModelSpec& spec, Recipe recipe,
                                                     const model::QuantizationScheme& scheme);

/// The bytes were every weight of 32 bits that is not quantized: for a config that names no dtype, which
/// engines take for 16 bits. Nothing for one that names it, and where stored_checkpoint has nothing.
std::optional<Bytes> most_checkpoint_bytes(const model::ModelSpec& spec,
                                           const std::optional<model::Quantization>& quantization);

/// Whether all weights of the spec can be held against the declaration's patterns in reasonable time.
bool can_ask_about(const model::ModelSpec& spec, const model::Quantization& quantization);

// Where the modules of a wrapper's language model stand in its files.
enum class FileNaming { kAsInSpec, kBehindLanguageModel, kWithinModel };

/// In which scheme does the checkpoint store each weight of a model, by what its config declares? The
/// declaration's own names for modules are found out once. Spec and declaration must outlive it.
class DeclaredSchemes {
 public:
  /// Nothing when its lists name modules by other names than these, or hold more patterns than can be tried.
  static std::optional<DeclaredSchemes> find(const model::ModelSpec& spec,
                                             const model::Quantization& quantization);

  /// Null where the weight stays as declared.
  const model::QuantizationScheme* scheme_of(const model::Weight& weight) const;

 private:
  DeclaredSchemes(const model::Quantization& quantization, FileNaming naming)
      : quantization_(&quantization), naming_(naming) {}

  const model::Quantization* quantization_;
  FileNaming naming_;
};

}  // namespace plimsoll::memory
