// SPDX-License-Identifier: Apache-2.0
// Which causes can set a published total apart from the model's own parameters, and which of them make up for
// a difference? Counts from the spec and from what its checkpoint would hold; no tables of models. Pure
// functions.
#pragma once

#include <optional>
#include <vector>

#include "inspect/inspect.h"
#include "memory/quantized_weights.h"
#include "model/model.h"

namespace plimsoll::inspect {

/// What a checkpoint of this model may hold beside its parameters, or lack of them. Any of them may be
/// absent. Source: docs/formulas/weights.md.
std::vector<Difference> possible_causes(const model::ModelSpec& spec,
                                        const std::optional<memory::StoredCheckpoint>& checkpoint);
/// The scales that fp8 in blocks has, for configs that are published without saying so.
std::vector<Difference> undeclared_scales(const model::ModelSpec& spec);

struct Explanation {
  std::vector<Difference> differences;
  std::int64_t rest = 0;  // that no cause makes up for
};

/// The causes that come nearest to the remainder; of equal ones the fewest.
Explanation explain(std::int64_t remainder, const std::vector<Difference>& causes);

/// The remainder as whole rows of the tables by tokens, up or down to a multiple of 64. Rows are the last
/// resort: any multiple of the width is some number of them.
std::optional<Difference> vocabulary_rows(std::int64_t remainder, const model::ModelSpec& spec);

/// The causes after which rounding the published total accounts for what is left; nothing for a total that is
/// not round, or so round that it would account for much.
std::optional<Explanation> explain_rounded(std::int64_t published, std::int64_t total,
                                           const std::vector<Difference>& causes);

}  // namespace plimsoll::inspect
