// SPDX-License-Identifier: Apache-2.0
// Which models get a pool of their own for layers with windows in SGLang, and which drafts does it count?
// Constants read off its configs/model_config.py of 0.5.23. Any thread may call.
#pragma once

#include <string_view>

namespace plimsoll::facts {

/// Others keep all tokens in every layer. `architecture` as in the config's `architectures`.
bool sglang_has_window_pool(std::string_view architecture);

/// For how many of the model's own prediction layers the pool of tokens is sized, `stored` of which the
/// checkpoint has. Of some the engine knows no number before it has sized the pool.
int sglang_draft_layers(std::string_view architecture, int stored);

}  // namespace plimsoll::facts
