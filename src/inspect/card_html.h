// SPDX-License-Identifier: Apache-2.0
// What do the HTML tables of a card say? Rewrites them as Markdown tables, cells that span rows repeated, so
// that one reader of tables does for both. Pure.
#pragma once

#include <string>
#include <string_view>

namespace plimsoll::inspect {

/// The text with its HTML tables as Markdown ones; tables that never end, and all else, stay as they are.
std::string with_markdown_tables(std::string_view text);

}  // namespace plimsoll::inspect
