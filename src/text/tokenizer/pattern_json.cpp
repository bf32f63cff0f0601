// SPDX-License-Identifier: Apache-2.0
#include "text/tokenizer/pattern_json.h"

namespace plimsoll::text {

Result<Regex> read_pattern(const Json& json, std::string_view where) {
  if (const std::string* text = json["String"].as_string()) return Regex::literal(*text);
  if (const std::string* text = json["Regex"].as_string()) return Regex::compile(*text);
  return fail(ErrorCode::kMalformed, "a pattern must be a String or a Regex: " + dump(json),
              std::string(where));
}

}  // namespace plimsoll::text
