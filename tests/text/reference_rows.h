// SPDX-License-Identifier: Apache-2.0
// Reference rows (JSON lines) and checks of a tokenizer against them, shared by the tests of this room.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/json.h"
#include "text/text.h"

namespace plimsoll::text {

/// One value per line of the file; fails the test when the file cannot be read.
std::vector<Json> read_rows(const std::string& path);

std::vector<TokenId> to_ids(const Json& json);

/// Rows of one tokenizer: encoding (three ways), decoding, invalid bytes and streams. Every difference fails.
struct RowCounts {
  int encoded = 0;
  int streams = 0;
  int bytes = 0;
};
void check_row(const std::shared_ptr<const Tokenizer>& tokenizer, const Json& row,
               const std::vector<TokenId>& empty_with_special, RowCounts& counts);

}  // namespace plimsoll::text
