// SPDX-License-Identifier: Apache-2.0
// What do the licences that models are published under allow? One row per id as the hub spells it (or per
// name that cards give beside "other"), and the phrases by which a LICENSE file is recognised. A reading in
// our own words, no legal advice. Constants; any thread may call.
#pragma once

#include <optional>
#include <span>
#include <string_view>

namespace plimsoll::facts {

enum class Permission { kUnknown, kYes, kNo, kConditional };
/// "yes" "no" "conditional"; empty for kUnknown.
std::string_view to_string(Permission permission);

struct LicenseFacts {
  std::string_view id;     // apache-2.0, llama3.1, ...
  std::string_view title;  // Apache License 2.0
  Permission commercial_use, redistribution, derivatives;
  std::string_view conditions;  // what "conditional" and "no" stand for; empty where there is nothing to say
  bool is_gated;                // the publisher's own repositories ask for consent first
  std::string_view source;
  std::string_view date;  // when the row was written

  bool is_known() const { return commercial_use != Permission::kUnknown; }
};

std::span<const LicenseFacts> all_licenses();

/// The row of an id or license_name; case, blanks and underscores do not count. Null when there is none.
const LicenseFacts* find_license(std::string_view id);

/// The row whose phrases a licence's text holds, or null. Looks at the first 64 KiB.
const LicenseFacts* recognize_license(std::string_view text);

}  // namespace plimsoll::facts
