// SPDX-License-Identifier: Apache-2.0
// Do the heads of a config fit each other? For the readers of configs and of GGUF keys.
#pragma once

#include <string_view>

#include "model/key_reader.h"
#include "model/model.h"

namespace plimsoll::model {

/// Heads share keys and values evenly. Errors: kept in `keys`.
void check_heads(KeyReader& keys, const Attention& attention, std::string_view kv_heads_key);

/// The value under `key`; else `otherwise` where it is above 0; else the width over the heads.
/// Errors: kept in `keys`: a width that does not split.
int read_head_dim(KeyReader& keys, int hidden_size, int heads, std::string_view key,
                  std::string_view heads_key, int otherwise);

}  // namespace plimsoll::model
