// SPDX-License-Identifier: Apache-2.0
// Fills a Quantization from the object that declares it: one function per family of methods
// (quantization_methods.cpp), and what all of them share (quantization_reader.cpp). For quantization.cpp
// alone; views the objects it is given, single thread.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "model/quantization.h"

namespace plimsoll::model {

/// Schemes that may follow each other; configs have some dozens.
inline constexpr std::size_t kMaxRules = 1024;

/// The first of several spellings that is there and is not null; else null.
const Json& first_of(const Json& object, std::initializer_list<std::string_view> keys);
/// The text that a value is; empty for what is no text.
std::string text_of(const Json& value);
/// The bits of a code that an object states in any spelling; nothing where they cannot be.
std::optional<int> bits_at(const Json& object);

class QuantizationReader {
 public:
  /// `config`: the whole of config.json; `declaration`: the object that declares, null where there is none.
  QuantizationReader(const Json& config, const Json& declaration, Quantization& result)
      : config_(config), json_(declaration), result_(result) {}

  void read();
  /// hf_quant_config.json says again, and more fully, what modelopt wrote into config.json.
  void read_beside(const Json& quantization);

 private:
  std::string method() const;
  void read_shown();
  ModulePatternSet& modules_of(const QuantizationScheme& scheme);
  ModulePatternSet& modules_among(std::size_t first_rule, const QuantizationScheme& scheme);
  void add(ModulePattern pattern, const QuantizationScheme& scheme) {
    modules_of(scheme).add(std::move(pattern));
  }
  void add_everywhere(const QuantizationScheme& scheme) { add({ModulePattern::Kind::kAny, {}}, scheme); }
  void leave(ModulePattern pattern) { result_.left_.add(std::move(pattern)); }
  void leave_all(const Json& names, ModulePattern::Kind kind);
  void read_left();
  void fault(const std::string& pointer, const Json& value, const char* wanted);
  void check_figures(const Json& object, const std::string& pointer, int depth);
  void forget_layouts();

  void read_groups(const Json& object, ModulePattern::Kind kind);
  static QuantizationScheme scheme_of_group(const Json& group, const Json& weights, std::string format);
  void read_modelopt(const Json& object);
  void add_to_algorithm(const std::string& module, const std::string& algorithm, const Json& layer);
  void read_bitsandbytes();
  void read_float8();
  void read_gptq();
  void read_named_blocks(const QuantizationScheme& scheme);
  void read_awq();
  void read_mlx();
  void read_others();
  void read_torchao(QuantizationScheme& scheme);
  void read_quark(QuantizationScheme& scheme);
  void read_fp4_experts();

  const Json& config_;
  const Json& json_;
  Quantization& result_;
  std::vector<std::string> algorithms_;  // the last rules are theirs, in this order
  bool has_too_many_rules_ = false;
};

}  // namespace plimsoll::model
