// SPDX-License-Identifier: Apache-2.0
// What do published checkpoints hold that their configs, as these are passed on, leave unsaid? A class's
// defaults stand in for a key that is left out, and the checkpoint was made with another value. Constants;
// any thread may call.
#pragma once

#include <span>
#include <string_view>

#include "base/json.h"

namespace plimsoll::facts {

struct UnstatedPart {
  std::string_view model_type;  // of the config's root
  std::string_view fill;        // the values as JSON text; each counts only where the config states none
  std::string_view what;        // that it adds or changes, in words
  std::string_view source;
};

std::span<const UnstatedPart> unstated_parts();

/// The config with the part's values where it states none; null when it states one of them already. A null is
/// a statement only against a part whose own value is null.
Json filled(const Json& config, const UnstatedPart& part);

}  // namespace plimsoll::facts
