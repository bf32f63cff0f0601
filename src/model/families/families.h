// SPDX-License-Identifier: Apache-2.0
// The table of families: one row per architecture, one file per family. Adding a family is a file, a row here
// and a fixture.
#pragma once

#include <span>
#include <string_view>

#include "artifact/artifact.h"
#include "model/key_reader.h"
#include "model/model.h"

namespace plimsoll::model {

struct Family {
  std::string_view architecture;       // of config.json's architectures[]
  std::string_view model_type;         // of config.json, where architectures is absent
  std::string_view gguf_architecture;  // general.architecture; empty: no GGUF of it is read
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

}  // namespace plimsoll::model
