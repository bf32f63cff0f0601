// SPDX-License-Identifier: Apache-2.0
// Which serving engine knows which architecture, since which release, and what may be said of its features?
// Rows are read from the engines' own registries (support_table.cpp, generated) and from notes on single
// models; where there is no row the answer is unknown, never a guess. That a registry lists an architecture
// does not promise every feature of a checkpoint. Constants; any thread may call.
#pragma once

#include <optional>
#include <span>
#include <string_view>

namespace plimsoll::facts {

enum class ServingEngine { kVllm, kSglang, kLlamaCpp, kTgi, kNim, kRayServe, kOllama };
/// vllm sglang llama.cpp tgi nim ray-serve ollama
std::string_view to_string(ServingEngine engine);
/// All of them, in the order in which they are shown.
std::span<const ServingEngine> serving_engines();

enum class SupportStatus { kUnknown, kSupported, kPartial, kUnsupported };
/// unknown supported partial unsupported
std::string_view to_string(SupportStatus status);

/// One architecture in one engine's registry.
struct Listing {
  std::string_view architecture;  // of config.json's architectures[]
  ServingEngine engine;
  std::string_view since;  // first of the examined releases that lists it; empty: not known
  std::string_view until;  // last release that had it; empty: the newest has it
  bool is_multimodal;      // listed as taking images, video or sound
  bool has_lora;           // its class takes LoRA adapters; false: not known
};
std::span<const Listing> all_listings();

/// The names of general.architecture that llama.cpp's own table lists, in ascending order.
std::span<const std::string_view> gguf_architectures();

/// The model types whose config class vLLM has without code of the model's: transformers' and its own, in
/// ascending order. Source: transformers 5.24.0; vllm-project/vllm, transformers_utils/config.py, 2026-11-30.
std::span<const std::string_view> config_types();

struct EngineSupport {
  ServingEngine engine = ServingEngine::kVllm;
  SupportStatus status = SupportStatus::kUnknown;
  std::string_view since, until;
  std::optional<bool> multimodal, lora, mtp;  // empty: not known
  std::string_view note;                      // what is partial, or why; may be empty
  std::string_view source;                    // with its date
};

/// What is known of an architecture in an engine. `model_type` decides about draft layers (MTP).
EngineSupport support_of(ServingEngine engine, std::string_view architecture, std::string_view model_type);

/// What is known of a GGUF file of this general.architecture. It is llama.cpp's own format: a name of its
/// table is supported. Engines whose lists go by classes of config.json say unknown.
EngineSupport support_of_gguf(ServingEngine engine, std::string_view general_architecture);

/// Whether an engine's newest known release reads weights of a quant_method ("awq", "fp8", "gguf", ...).
/// Empty where no list of its methods is known.
std::optional<bool> reads_quantization(ServingEngine engine, std::string_view method);

}  // namespace plimsoll::facts
