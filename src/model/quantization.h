// SPDX-License-Identifier: Apache-2.0
// What does a config say about how its weights are quantized? One description out of every spelling:
// quantization_config at the root or in text_config, compression_config, hf_quant_config.json. Says what is
// declared; what is stored is read from headers (stored_weights.h). A value without other ownership; pure.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/dtype.h"
#include "base/json.h"
#include "model/module_pattern.h"
#include "model/stored_layout.h"

namespace plimsoll::model {

/// MLX's own key. Its object names no method; it stands again under quantization_config.
inline constexpr std::string_view kMlxKey = "quantization";

/// How the weights of some modules are quantized.
struct QuantizationScheme {
  Layout layout = Layout::kOther;
  std::optional<int> bits;
  std::optional<std::int64_t> group_size;  // along the input; -1: one group
  std::optional<std::int64_t> block_rows, block_columns;
  bool has_one_scale = false;  // for the whole tensor, not for each channel
  bool has_zero_points = false;
  bool has_order = false;        // g_idx
  bool has_input_scale = false;  // scales of activations are stored
  bool has_24_sparsity = false;
  bool has_whole_bytes = false;   // torchao's unpacked codes: a byte each
  bool doubly_quantized = false;  // bitsandbytes: the scales are codes themselves
  bool is_fp4 = false;            // bitsandbytes: codes of four bits stand for fp4's values, not for nf4's
  DType storage = DType::kU8;     // bitsandbytes: the type that the bytes of four-bit codes are given

  SchemeHint hint() const;
  friend bool operator==(const QuantizationScheme&, const QuantizationScheme&) = default;
};

struct QuantizationFault {
  std::string pointer;  // within the config
  std::string message;
};

struct Quantization {
  std::string pointer;  // where it stands: "/quantization_config"; empty: in hf_quant_config.json
  std::string file;     // that declares it when it is neither of the two; see declarations.h
  std::string method;   // as quant_method spells it; empty when it is not named
  Json format, version, desc_act;
  Json group_size;                        // as declared
  std::string kv_cache_algorithm;         // "FP8"; empty: as the model's own type
  std::vector<QuantizationFault> faults;  // figures that cannot be; what they describe is not counted
  std::vector<std::string> unconverted;   // the names and patterns that the config leaves as they are

  /// The scheme of a module that is a linear layer; null when the config leaves it as it is.
  const QuantizationScheme* scheme_of(std::string_view module) const;
  /// True when the config names the module among those that stay as they are.
  bool leaves(std::string_view module) const { return left_.matches(module); }
  /// The scheme of most modules; null when the config names none.
  const QuantizationScheme* main_scheme() const;
  /// The type of keys and values that vLLM 0.33 takes for `--kv-cache-dtype auto`: fp8 where a checkpoint of
  /// compressed-tensors or modelopt declares it. Nothing where the checkpoint decides nothing.
  std::optional<DType> kv_cache_dtype() const;
  /// What one question costs, in patterns and rules tried: those who ask about many modules keep to kMaxTries
  /// in all.
  std::int64_t num_tries() const;
  static constexpr std::int64_t kMaxTries = 1'000'000;  // about a second
  /// Whether so many questions stay within kMaxTries; asked before a loop over modules.
  bool can_answer(std::size_t num_questions) const;
  /// Expressions in the config that are not read here.
  std::vector<std::string> unread_patterns() const;

 private:
  friend class QuantizationReader;
  struct Rule {
    ModulePatternSet modules;
    QuantizationScheme scheme;
  };
  std::vector<Rule> rules_;  // the first that matches counts
  ModulePatternSet left_;
};

/// Keys of a config under which the object stands; the first that declares something counts.
inline constexpr std::array<std::string_view, 4> kDeclarationKeys{kMlxKey, "quantization_config",
                                                                  "compression_config", "compressed_config"};
/// Whether what stands under one of these keys declares a quantization. Under MLX's key others write other
/// things: there it is one that names bits and groups.
bool is_declaration(std::string_view key, const Json& value);

/// Reads what config.json and, where the folder has it, hf_quant_config.json declare (null when absent).
/// Nothing for a model that declares no quantization. Of a folder: declarations.h.
std::optional<Quantization> read_quantization(const Json& config, const Json& hf_quant_config);

}  // namespace plimsoll::model
