// SPDX-License-Identifier: Apache-2.0
// How do vLLM's classes of multimodal models hold the encoders beside the language model on tensor-parallel
// ranks? Their blocks are parallel layers in some classes, modules that every rank has whole in others.
// Constants; any thread may call. Source: vllm/model_executor/models and vllm/models of vLLM 0.11.2, 0.16.0,
// 0.19.1, 0.27.1 and 0.33.0, 2026-11-30.
#pragma once

#include <string_view>

namespace plimsoll::facts {

struct VllmEncoder {
  std::string_view architecture;
  bool splits_projector = false;  // what leads to the language model is split as the blocks are
  bool takes_data_mode = false;   // --mm-encoder-tp-mode data keeps all of it whole
};

/// The class for an architecture whose blocks are split; null where every rank has all of the encoder, or the
/// class was not looked at.
const VllmEncoder* find_vllm_encoder(std::string_view architecture);

}  // namespace plimsoll::facts
