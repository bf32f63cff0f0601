// SPDX-License-Identifier: Apache-2.0
#include "tests/text/model_rows.h"

#include <gtest/gtest.h>

namespace plimsoll::text {

Encoded encode(const PieceModel& model, std::string_view piece) {
  Encoded encoded;
  model.encode(piece, {encoded.first, &encoded.second});
  return encoded;
}

std::vector<Span> to_spans(const Json& json) {
  std::vector<Span> spans;
  for (const Json& pair : json.items())
    spans.push_back({static_cast<std::size_t>(*pair.items()[0].as_integer()),
                     static_cast<std::size_t>(*pair.items()[1].as_integer())});
  return spans;
}

Vocabulary to_vocabulary(const Json& tokens, Spelling spelling) {
  std::vector<Vocabulary::Entry> entries;
  for (const Json& token : tokens.items())
    entries.push_back({*token.as_string(), static_cast<std::int64_t>(entries.size())});
  auto made = Vocabulary::build(entries, spelling);
  EXPECT_TRUE(made);
  return made ? std::move(*made) : Vocabulary();
}

std::string from_hex(const std::string& hex) {
  std::string bytes;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2)
    bytes += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
  return bytes;
}

void PrintTo(const Span& span, std::ostream* out) {
  *out << '[' << span.begin << ", " << span.end << ')';
}

}  // namespace plimsoll::text
