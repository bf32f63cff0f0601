// SPDX-License-Identifier: Apache-2.0
#include "model/families/renames.h"

namespace plimsoll::model {

void rename_weights(ModelSpec& spec, std::initializer_list<Renaming> renamings) {
  for (Weight& weight : spec.weights) {
    if (weight.group == WeightGroup::kEncoder) continue;
    for (const auto& [from, to] : renamings)
      if (const auto at = weight.hf_name.find(from); at != std::string::npos)
        weight.hf_name.replace(at, from.size(), to);
  }
}

}  // namespace plimsoll::model
