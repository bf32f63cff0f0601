// SPDX-License-Identifier: Apache-2.0
#include "tests/text/reference_rows.h"

#include <gtest/gtest.h>

#include <fstream>

#include "base/utf8.h"

namespace plimsoll::text {
namespace {

void check_encoding(const Tokenizer& tokenizer, const Json& row,
                    const std::vector<TokenId>& empty_with_special) {
  const std::string& text = *row["text"].as_string();
  const std::vector<TokenId> ids = to_ids(row["ids"]);
  EXPECT_EQ(tokenizer.encode(text, {false, true}), ids) << text;
  std::vector<TokenId> special = empty_with_special;
  special.insert(special.end(), ids.begin(), ids.end());
  if (row.contains("ids_special")) special = to_ids(row["ids_special"]);
  EXPECT_EQ(tokenizer.encode(text), special) << text;
  EXPECT_EQ(tokenizer.encode(text, {false, false}),
            row.contains("ids_noparse") ? to_ids(row["ids_noparse"]) : ids)
      << text;
  const std::string decoded = row.contains("decoded") ? *row["decoded"].as_string() : text;
  EXPECT_EQ(tokenizer.decode(ids, false), decoded);
  EXPECT_EQ(tokenizer.decode(ids, true),
            row.contains("decoded_skip") ? *row["decoded_skip"].as_string() : decoded);
}

// Rows of references that never parse special strings out of text state nothing else.
void check_plain_encoding(const Tokenizer& tokenizer, const Json& row) {
  const std::string& text = *row["text"].as_string();
  const std::vector<TokenId> ids = to_ids(row["ids_noparse"]);
  EXPECT_EQ(tokenizer.encode(text, {false, false}), ids) << text;
  EXPECT_EQ(tokenizer.decode(ids, false), row.contains("decoded") ? *row["decoded"].as_string() : text);
}

void check_stream(const std::shared_ptr<const Tokenizer>& tokenizer, const Json& row) {
  StreamDecoder decoder(tokenizer, *row["skip_special"].as_bool());
  std::string all, reference;
  const auto& chunks = row["chunks"].items();
  const std::vector<TokenId> ids = to_ids(row["ids"]);
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const auto chunk = decoder.push(ids[i]);
    if (chunk) all += *chunk;
    if (i >= chunks.size()) continue;  // the reference gave up there
    EXPECT_EQ(Json(chunk), chunks[i]) << dump(row) << " at " << i;
    if (chunks[i].as_string()) reference += *chunks[i].as_string();
  }
  all += decoder.flush();
  const std::string& full = *row["full"].as_string();
  if (!row.contains("error") && full.starts_with(reference)) {
    EXPECT_EQ(all, full);
  } else {  // later bytes spoilt text that had been given out: it stays, and the rest follows
    EXPECT_TRUE(all.starts_with(reference) && is_valid_utf8(all)) << dump(row);
  }
}

std::string from_hex(const std::string& hex) {
  std::string bytes;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2)
    bytes += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
  return bytes;
}

}  // namespace

std::vector<Json> read_rows(const std::string& path) {
  std::ifstream file(path);
  EXPECT_TRUE(file) << path;
  std::vector<Json> rows;
  for (std::string line; std::getline(file, line);) {
    auto row = parse_json(line, path);
    EXPECT_TRUE(row) << line;
    if (row) rows.push_back(std::move(*row));
  }
  return rows;
}

std::vector<TokenId> to_ids(const Json& json) {
  std::vector<TokenId> ids;
  for (const Json& item : json.items()) ids.push_back(static_cast<TokenId>(*item.as_integer()));
  return ids;
}

void check_row(const std::shared_ptr<const Tokenizer>& tokenizer, const Json& row,
               const std::vector<TokenId>& empty_with_special, RowCounts& counts) {
  const std::string& kind = *row["kind"].as_string();
  if (kind == "enc") {
    ++counts.encoded;
    if (row.contains("ids"))
      check_encoding(*tokenizer, row, empty_with_special);
    else
      check_plain_encoding(*tokenizer, row);
  } else if (kind == "stream") {
    ++counts.streams;
    check_stream(tokenizer, row);
  } else if (kind == "bytes") {
    ++counts.bytes;
    EXPECT_EQ(tokenizer->encode(from_hex(*row["hex"].as_string()), {false, true}), to_ids(row["ids"]))
        << dump(row);
  }
}

}  // namespace plimsoll::text
