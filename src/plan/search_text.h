// SPDX-License-Identifier: Apache-2.0
// Inside the plan room: a search as a page for people. Pure.
#pragma once

#include <string>

#include "plan/plan.h"

namespace plimsoll::plan {

/// The cheapest layouts that fit, one a line, then the others by their reason.
std::string search_text(const Plan& plan, const std::string& engine);

}  // namespace plimsoll::plan
