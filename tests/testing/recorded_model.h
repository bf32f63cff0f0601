// SPDX-License-Identifier: Apache-2.0
// Tiny models that transformers has computed, data/architectures/NAME.json as tools/record_architectures.py
// writes them: config, shapes, prompt, logits, greedy tokens. The weights are made here by the formula that
// the reference's were made by. Trusts its input; tests only.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "tests/testing/made_files.h"

namespace plimsoll::testing {

struct RecordedModel {
  std::string name, config;
  Json tensors;  // [name with "{1,2}" for one tensor each, shape]
  std::vector<std::int32_t> prompt, greedy;
  std::vector<std::vector<float>> logits;  // [positions of the prompt][vocabulary]
  float scale = 0;                         // the largest of them
};

/// Names of all recordings, in order.
std::vector<std::string> recorded_names();
/// That recording; fails the test and is empty when it cannot be read.
RecordedModel read_recorded(const std::string& name);
/// The values of a tensor: FNV-1a of its name, SplitMix64 from there, the upper 24 bits as a number in [-1,
/// 1).
std::vector<float> made_values(std::string_view name, const std::vector<std::int64_t>& shape);
/// config.json and model.safetensors, as a user's folder has them. `broken`: a tensor whose first row is
/// zero.
void put_model(const MadeFolder& folder, const RecordedModel& model, std::string_view broken = {});

}  // namespace plimsoll::testing
