// SPDX-License-Identifier: Apache-2.0
// Mistral 7B and its relatives: Llama with a window on every layer. Source: transformers' MistralConfig.
#include "model/families/decoder.h"
#include "model/families/families.h"

namespace plimsoll::model {

ModelSpec mistral_from_config(KeyReader& keys) {
  ModelSpec spec = read_config_decoder(
      keys, {.norm_eps = 1e-6, .context_tokens = 131'072, .kv_heads = 8, .intermediate_size = 14'336});
  // A null switches the window off; a config that is silent gets transformers' default.
  const Json& stated = keys["sliding_window"];
  std::optional<std::int64_t> window;
  if (!stated.is_null())
    window = keys.integer("sliding_window", 1, kMaxContext);
  else if (!keys.contains("sliding_window"))
    window = 4096;
  for_each_attention(spec, [&](Attention& attention, std::size_t) { attention.window_tokens = window; });
  read_layer_types(keys, window, spec);
  write_decoder(spec);
  spec.has_file_names = true;
  return spec;
}

}  // namespace plimsoll::model
