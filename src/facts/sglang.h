// SPDX-License-Identifier: Apache-2.0
// Which models get a pool of their own for layers with windows in SGLang?
// Constants read off its configs/model_config.py of 0.5.23. Any thread may call.
#pragma once

#include <string_view>

namespace plimsoll::facts {

/// Others keep all tokens in every layer. `architecture` as in the config's `architectures`.
bool sglang_has_window_pool(std::string_view architecture);

}  // namespace plimsoll::facts
