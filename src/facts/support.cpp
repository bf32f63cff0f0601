// SPDX-License-Identifier: Apache-2.0
#include "facts/support.h"

#include <algorithm>
#include <array>
#include <vector>

#include "facts/engines.h"

namespace plimsoll::facts {
namespace {

constexpr std::array<std::pair<ServingEngine, std::string_view>, 7> kEngines{{
    {ServingEngine::kVllm, "vllm"},
    {ServingEngine::kSglang, "sglang"},
    {ServingEngine::kLlamaCpp, "llama.cpp"},
    {ServingEngine::kTgi, "tgi"},
    {ServingEngine::kNim, "nim"},
    {ServingEngine::kRayServe, "ray-serve"},
    {ServingEngine::kOllama, "ollama"},
}};

constexpr std::array<std::pair<SupportStatus, std::string_view>, 4> kStatuses{{
    {SupportStatus::kUnknown, "unknown"},
    {SupportStatus::kSupported, "supported"},
    {SupportStatus::kPartial, "partial"},
    {SupportStatus::kUnsupported, "unsupported"},
}};

constexpr std::string_view kVllmSource =
    "https://github.com/vllm-project/vllm, model_executor/models/registry.py of v0.33.0; since: first that "
    "lists it of 31 releases from 0.6.0 on, 2026-11-29";
constexpr std::string_view kSglangSource =
    "https://github.com/sgl-project/sglang, srt/models of v0.5.23; since: first that lists it of 7 releases "
    "from 0.4.0 on, 2026-11-29";
constexpr std::string_view kLlamaCppSource =
    "https://github.com/ggml-org/llama.cpp, conversion/__init__.py as packaged with llama-cpp-python 0.3.36, "
    "2026-11-29";
constexpr std::string_view kGgufSource =
    "https://github.com/ggml-org/llama.cpp, gguf-py/gguf/constants.py as packaged with llama-cpp-python "
    "0.3.36, 2026-11-29";
constexpr std::string_view kTgiSource =
    "https://huggingface.co/docs/text-generation-inference/supported_models, 2026-11-29";
constexpr std::string_view kNimSource =
    "https://docs.nvidia.com/nim/large-language-models, supported architectures (the first few), 2026-11-29";
constexpr std::string_view kRaySource =
    "https://github.com/ray-project/ray: 2.60.0 pins vLLM 0.29.0 for ray[llm]; vLLM's registry of that "
    "release, "
    "2026-11-29";
constexpr std::string_view kRayVllm = "0.29.0";
constexpr std::string_view kNoSource = "no list was examined, 2026-11-29";
constexpr std::string_view kOllamaNote =
    "runs GGUF files through its own llama.cpp; which release is in it was not examined";

/// What is known of a model in an engine beyond the registries.
struct Note {
  std::string_view architecture;
  ServingEngine engine;
  SupportStatus status;
  std::string_view since, note, source;
};

constexpr std::array<Note, 6> kNotes{{
    {"Qwen4ExpForConditionalGeneration", ServingEngine::kVllm, SupportStatus::kSupported, "0.30.0",
     "tensor parallel 1, 2, 4, 8; FP8 at 8 needs --enable-expert-parallel; no pipeline parallelism",
     "https://github.com/vllm-project/vllm, v0.30.0, 2026-11-29"},
    {"Qwen4ExpForConditionalGeneration", ServingEngine::kSglang, SupportStatus::kSupported, "0.5.23",
     "page size 64 needs the extra-buffer state strategy or no radix cache",
     "https://github.com/sgl-project/sglang, v0.5.23, 2026-11-29"},
    {"Qwen4ExpForConditionalGeneration", ServingEngine::kLlamaCpp, SupportStatus::kPartial, "b10711",
     "the converter drops the MTP layer; images need a projector file",
     "https://github.com/ggml-org/llama.cpp, build b10711, 2026-11-29"},
    {"DeciLMForCausalLM", ServingEngine::kNim, SupportStatus::kSupported, "",
     "verified with its TensorRT-LLM", kNimSource},
    {"BloomForCausalLM", ServingEngine::kNim, SupportStatus::kSupported, "", "verified with its vLLM",
     kNimSource},
    {"DeepseekV2ForCausalLM", ServingEngine::kNim, SupportStatus::kSupported, "", "verified with its vLLM",
     kNimSource},
}};

/// TGI's documentation names families; these are the classes of them.
constexpr std::array<std::string_view, 38> kTgiArchitectures{
    "DeepseekV2ForCausalLM",
    "DeepseekV3ForCausalLM",
    "Idefics2ForConditionalGeneration",
    "Idefics3ForConditionalGeneration",
    "LlavaNextForConditionalGeneration",
    "LlamaForCausalLM",
    "Llama4ForConditionalGeneration",
    "Phi3ForCausalLM",
    "GraniteForCausalLM",
    "GemmaForCausalLM",
    "PaliGemmaForConditionalGeneration",
    "Gemma2ForCausalLM",
    "Gemma3ForConditionalGeneration",
    "Gemma3ForCausalLM",
    "CohereForCausalLM",
    "DbrxForCausalLM",
    "MambaForCausalLM",
    "MistralForCausalLM",
    "MixtralForCausalLM",
    "GPTBigCodeForCausalLM",
    "PhiForCausalLM",
    "PhiMoEForCausalLM",
    "BaichuanForCausalLM",
    "FalconForCausalLM",
    "Starcoder2ForCausalLM",
    "Qwen2ForCausalLM",
    "Qwen2VLForConditionalGeneration",
    "Qwen2_5_VLForConditionalGeneration",
    "OPTForCausalLM",
    "T5ForConditionalGeneration",
    "BloomForCausalLM",
    "MPTForCausalLM",
    "MptForCausalLM",
    "GPT2LMHeadModel",
    "GPTNeoXForCausalLM",
    "GPTJForCausalLM",
    "IdeficsForVisionText2Text",
    "MllamaForConditionalGeneration",
};

/// model_types whose stored draft layers vLLM 0.33.0 runs for speculative decoding.
constexpr std::array<std::string_view, 31> kVllmMtp{
    "deepseek_v3",   "deepseek_v32",  "deepseek_v4",   "deepseek_v41",   "glm_moe_dsa",
    "glm4_moe",      "glm4_moe_lite", "glm_ocr",       "mimo",           "mimo_v2",
    "mimo_v2_flash", "ernie4_5_moe",  "nemotron_h",    "qwen3_next",     "qwen4_exp",
    "qwen3_5",       "qwen3_5_moe",   "qwen3_5_text",  "qwen4_exp_text", "qwen3_5_moe_text",
    "exaone_moe",    "exaone4_5",     "longcat_flash", "step3p5",        "step3p7",
    "hy_v3",         "hy_v4",         "kimi_k3",       "bailing_hybrid", "pangu_ultra_moe",
    "minimax_m3_vl"};

/// quant_methods of the newest examined releases.
constexpr std::array<std::string_view, 16> kVllmMethods{"awq",
                                                        "gptq",
                                                        "fp8",
                                                        "fbgemm_fp8",
                                                        "fp_quant",
                                                        "modelopt",
                                                        "compressed-tensors",
                                                        "mxfp8",
                                                        "quark",
                                                        "experts_int8",
                                                        "torchao",
                                                        "mxfp4",
                                                        "auto-round",
                                                        "inc",
                                                        "modelopt_fp4",
                                                        "modelopt_mixed"};
/// Methods whose weights llama.cpp's converter takes out of their codes (conversion/base.py of that release).
constexpr std::array<std::string_view, 6> kLlamaCppConverts{"bitnet",   "fp8",  "gptq", "compressed-tensors",
                                                            "modelopt", "mxfp4"};
constexpr std::array<std::string_view, 16> kSglangMethods{
    "awq",        "gptq",         "fp8",       "mxfp8",
    "modelopt",   "modelopt_fp4", "quark",     "bitsandbytes",
    "auto-round", "w8a8_int8",    "w8a8_fp8",  "w4afp8",
    "mxfp4",      "gguf",         "modelslim", "compressed-tensors"};

/// The leading numbers of "0.4.6.post5".
const Listing* listing_of(ServingEngine engine, std::string_view architecture) {
  for (const Listing& row : all_listings())
    if (row.engine == engine && row.architecture == architecture) return &row;
  return nullptr;
}

std::string_view source_of(ServingEngine engine) {
  switch (engine) {
    case ServingEngine::kVllm:
      return kVllmSource;
    case ServingEngine::kSglang:
      return kSglangSource;
    case ServingEngine::kLlamaCpp:
      return kLlamaCppSource;
    case ServingEngine::kTgi:
      return kTgiSource;
    case ServingEngine::kNim:
      return kNimSource;
    case ServingEngine::kRayServe:
      return kRaySource;
    case ServingEngine::kOllama:
      return kNoSource;
  }
  return kNoSource;
}

EngineSupport from_listing(ServingEngine engine, const Listing* row) {
  EngineSupport support;
  support.engine = engine;
  support.source = source_of(engine);
  if (!row) return support;
  support.status = row->until.empty() ? SupportStatus::kSupported : SupportStatus::kUnsupported;
  support.since = row->since;
  support.until = row->until;
  if (engine != ServingEngine::kSglang) support.multimodal = row->is_multimodal;
  if (row->has_lora) support.lora = true;
  if (!row->until.empty()) support.note = "left the engine after that release";
  return support;
}

/// The vLLM that first runs an architecture: a note knows better than the first release that was examined.
std::string_view vllm_since(std::string_view architecture, const Listing& row) {
  for (const Note& note : kNotes)
    if (note.engine == ServingEngine::kVllm && note.architecture == architecture && !note.since.empty())
      return note.since;
  return row.since;
}

/// Ray Serve's LLM API runs the vLLM that its release pins.
EngineSupport ray_support(std::string_view architecture) {
  const Listing* row = listing_of(ServingEngine::kVllm, architecture);
  EngineSupport support = from_listing(ServingEngine::kRayServe, row);
  support.since = {};  // of Ray: not known
  if (!row) return support;
  const auto pinned = release_numbers(kRayVllm);
  const bool is_in = release_numbers(vllm_since(architecture, *row)) <= pinned;
  const bool is_gone = !row->until.empty() && release_numbers(row->until) < pinned;
  support.until = {};
  support.status = is_in && !is_gone ? SupportStatus::kSupported : SupportStatus::kUnsupported;
  support.note = is_in && !is_gone ? "" : "not in the vLLM that is pinned";
  return support;
}

}  // namespace

std::string_view to_string(ServingEngine engine) {
  for (const auto& [value, text] : kEngines)
    if (value == engine) return text;
  return "";
}

std::span<const ServingEngine> serving_engines() {
  static constexpr std::array<ServingEngine, kEngines.size()> kAll{
      ServingEngine::kVllm, ServingEngine::kSglang,   ServingEngine::kLlamaCpp, ServingEngine::kTgi,
      ServingEngine::kNim,  ServingEngine::kRayServe, ServingEngine::kOllama};
  return kAll;
}

std::string_view to_string(SupportStatus status) {
  for (const auto& [value, text] : kStatuses)
    if (value == status) return text;
  return "";
}

EngineSupport support_of(ServingEngine engine, std::string_view architecture, std::string_view model_type) {
  EngineSupport support;
  support.engine = engine;
  support.source = source_of(engine);
  switch (engine) {
    case ServingEngine::kVllm:
    case ServingEngine::kSglang:
    case ServingEngine::kLlamaCpp:
      support = from_listing(engine, listing_of(engine, architecture));
      break;
    case ServingEngine::kRayServe:
      support = ray_support(architecture);
      break;
    case ServingEngine::kTgi:
      if (std::find(kTgiArchitectures.begin(), kTgiArchitectures.end(), architecture) !=
          kTgiArchitectures.end())
        support.status = SupportStatus::kSupported;
      break;
    case ServingEngine::kNim:
      break;
    case ServingEngine::kOllama:
      support.note = kOllamaNote;
      break;
  }
  if (engine == ServingEngine::kVllm && support.status == SupportStatus::kSupported)
    support.mtp = std::find(kVllmMtp.begin(), kVllmMtp.end(), model_type) != kVllmMtp.end();
  for (const Note& note : kNotes) {
    if (note.engine != engine || note.architecture != architecture) continue;
    support.status = note.status;
    support.since = note.since;
    support.note = note.note;
    support.source = note.source;
  }
  return support;
}

EngineSupport support_of_gguf(ServingEngine engine, std::string_view general_architecture) {
  EngineSupport support;
  support.engine = engine;
  support.source = source_of(engine);
  if (engine == ServingEngine::kOllama) support.note = kOllamaNote;
  if (engine != ServingEngine::kLlamaCpp) return support;
  support.source = kGgufSource;
  const auto names = gguf_architectures();
  if (std::binary_search(names.begin(), names.end(), general_architecture))
    support.status = SupportStatus::kSupported;
  return support;
}

std::optional<bool> reads_quantization(ServingEngine engine, std::string_view method) {
  const auto is_one_of = [&](const auto& methods) {
    return std::find(methods.begin(), methods.end(), method) != methods.end();
  };
  switch (engine) {
    case ServingEngine::kVllm:
      return is_one_of(kVllmMethods);
    case ServingEngine::kSglang:
      return is_one_of(kSglangMethods);
    case ServingEngine::kLlamaCpp:
      return method == "gguf" || is_one_of(kLlamaCppConverts);
    case ServingEngine::kOllama:
      return method == "gguf";
    case ServingEngine::kTgi:
    case ServingEngine::kNim:
    case ServingEngine::kRayServe:
      return std::nullopt;
  }
  return std::nullopt;
}

}  // namespace plimsoll::facts
