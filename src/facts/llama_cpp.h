// SPDX-License-Identifier: Apache-2.0
// For which models does llama.cpp keep less, or more, than the architecture asks for?
// Constants read off its loaders (src/models), build of llama-cpp-python 0.3.36. Any thread may call.
#pragma once

#include <string_view>

namespace plimsoll::facts {

/// Whether its loader reads the window: layers with one then keep so many tokens, and all of them otherwise.
/// `model_type` is that of a config, or the architecture of a GGUF file.
bool llama_cpp_uses_windows(std::string_view model_type);

/// Whether latent attention keeps the latent alone; otherwise each head's keys and values.
bool llama_cpp_absorbs_latents(std::string_view model_type);

}  // namespace plimsoll::facts
