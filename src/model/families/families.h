// SPDX-License-Identifier: Apache-2.0
// The table of families: one row per architecture, one file per family. Adding a family is a
// file, a row here and a fixture.
#pragma once

#include <span>
#include <string_view>

#include "artifact/artifact.h"
#include "model/families/spec_writer.h"
#include "model/key_reader.h"
#include "model/model.h"

namespace plimsoll::model {

/// A language model.
struct Family {
  std::string_view architecture;       // of config.json's architectures[]; empty: the row adds a model_type
  std::string_view model_type;         // of config.json or a wrapper's text_config
  std::string_view gguf_architecture;  // general.architecture; empty: no GGUF of it is read by this row
  ModelSpec (*from_config)(KeyReader&);
  ModelSpec (*from_gguf)(KeyReader&, const artifact::Artifact&);  // null with an empty gguf_architecture
};
std::span<const Family> families();

ModelSpec llama_from_config(KeyReader& keys);
ModelSpec llama_from_gguf(KeyReader& keys, const artifact::Artifact& artifact);
ModelSpec mistral_from_config(KeyReader& keys);
ModelSpec qwen2_from_config(KeyReader& keys);
ModelSpec qwen2_from_gguf(KeyReader& keys, const artifact::Artifact& artifact);
ModelSpec qwen3_from_config(KeyReader& keys);
ModelSpec qwen3_from_gguf(KeyReader& keys, const artifact::Artifact& artifact);
ModelSpec qwen2_moe_from_config(KeyReader& keys);
ModelSpec qwen3_moe_from_config(KeyReader& keys);
ModelSpec deepseek_v3_from_config(KeyReader& keys);
ModelSpec deepseek_v32_from_config(KeyReader& keys);
ModelSpec qwen3_next_from_config(KeyReader& keys);
ModelSpec qwen3_5_from_config(KeyReader& keys);
ModelSpec qwen3_5_moe_from_config(KeyReader& keys);
ModelSpec qwen4_exp_from_config(KeyReader& keys);
ModelSpec mamba_from_config(KeyReader& keys);
ModelSpec mamba2_from_config(KeyReader& keys);
ModelSpec bamba_from_config(KeyReader& keys);
ModelSpec falcon_h1_from_config(KeyReader& keys);
ModelSpec granitemoehybrid_from_config(KeyReader& keys);
ModelSpec jamba_from_config(KeyReader& keys);
ModelSpec zamba_from_config(KeyReader& keys);
ModelSpec zamba2_from_config(KeyReader& keys);
ModelSpec nemotron_h_from_config(KeyReader& keys);
ModelSpec lfm2_from_config(KeyReader& keys);
ModelSpec lfm2_moe_from_config(KeyReader& keys);
ModelSpec recurrent_gemma_from_config(KeyReader& keys);

/// Windows of Qwen 2, 3 and their mixtures: layer_types, or use_sliding_window from max_window_layers on.
void read_qwen_windows(KeyReader& keys, ModelSpec& spec);

}  // namespace plimsoll::model
