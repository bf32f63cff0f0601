// SPDX-License-Identifier: Apache-2.0
#include "artifact/index_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "artifact/content.h"
#include "artifact/folder.h"
#include "artifact/json_place.h"
#include "artifact/json_scan.h"
#include "artifact/name_table.h"
#include "base/large_pages.h"
#include "base/units.h"

namespace plimsoll::artifact {
namespace {

constexpr std::size_t kMaxEntries = std::size_t{1} << 19;  // the largest models have some 300,000 tensors
constexpr std::size_t kLikelyEntry = 32;  // bytes of a short entry; the real ones have 60 and more
constexpr std::size_t kMaxMetadata = std::size_t{1} << 20;
constexpr std::size_t kRefusedShown = 6;
constexpr int kMaxDepth = 64;
constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

class Reader {
 public:
  Reader(std::string_view text, IndexText& index) : scan_(text, true), index_(index) {
    table_.reset(kFewShards);
    // Room that is not used costs addresses, not memory.
    const std::size_t room = std::min(text.size() / kLikelyEntry + 1, kMaxEntries);
    index_.entries.reserve(room);
    use_large_pages(index_.entries.data(), room * sizeof(IndexText::Entry));
  }

  // False: the text is no index; fault() says why.
  bool read() {
    if (scan_.peek() != '{') return no("the index is not a JSON object");
    scan_.take('{');
    bool has_map = false;
    if (!scan_.take('}')) {
      do {
        std::string key;
        if (!scan_.string(key) || !scan_.take(':')) return bad_syntax();
        const bool is_map = key == "weight_map";
        if (is_map ? !read_map() : !read_other(key)) return fault_.empty() ? bad_syntax() : false;
        has_map |= is_map;
      } while (scan_.take(','));
      if (!scan_.take('}')) return bad_syntax();
    }
    scan_.skip_space();
    if (!scan_.is_at_end()) return bad_syntax();
    if (!has_map) return no("the index has no object \"weight_map\"");
    return true;
  }
  const std::string& fault() const { return fault_; }
  bool is_syntax() const { return is_syntax_; }
  std::size_t position() const { return scan_.position(); }

 private:
  static constexpr std::size_t kMaxShards = 100'000, kFewShards = 512;

  bool no(std::string fault) {
    fault_ = std::move(fault);
    return false;
  }
  bool bad_syntax() {
    is_syntax_ = true;
    return no("JSON cannot be read" +
              (scan_.reason().empty() ? std::string() : ": " + std::string(scan_.reason())));
  }

  bool read_other(const std::string& key) {
    const auto text = scan_.value(kMaxDepth);
    if (!text) return false;
    if (key != "metadata") return true;
    index_.total_size = {};
    if (text->size() > kMaxMetadata) return true;
    if (const auto metadata = parse_json(*text, key)) index_.total_size = (*metadata)["total_size"];
    return true;
  }

  bool read_map() {
    if (!index_.entries.empty() || !index_.refused_tensors.empty()) {  // a second one replaces the first
      ++index_.num_repeated;
      index_.first_repeated = "weight_map";
      index_.entries.clear();
      index_.refused_tensors.clear();
      index_.refused_values.clear();
    }
    if (scan_.peek() != '{') return no("the index has no object \"weight_map\"");
    scan_.take('{');
    if (scan_.take('}')) return true;
    do {
      if (index_.entries.size() + index_.refused_tensors.size() == kMaxEntries)
        return no(
            fmt::format("weight_map has more than {} entries; no model has as many tensors", kMaxEntries));
      if (!read_entry()) return false;
    } while (scan_.take(','));
    return scan_.take('}');
  }

  bool read_entry() {
    std::string_view tensor;
    if (const auto plain = scan_.plain_string()) {
      tensor = *plain;
    } else {
      std::string spelled;
      if (!scan_.string(spelled)) return false;
      tensor = index_.spelled.emplace_back(std::move(spelled));
    }
    if (!scan_.take(':')) return false;
    if (const auto plain = scan_.plain_string()) return take_entry(tensor, *plain);
    const auto value = scan_.value(kMaxDepth);
    if (!value) return false;
    std::string shard;
    if (value->front() != '"' || !JsonScan(*value).string(shard)) {
      refuse(tensor, *value);
      return true;
    }
    return take_entry(tensor, shard);
  }

  // The shard of the entry before is the likely one.
  bool take_entry(std::string_view tensor, std::string_view shard) {
    if (index_.shards.empty() || index_.shards[last_] != shard) {
      if (!is_inside(shard)) {
        refuse(tensor, dump(Json(shard.substr(0, 256))));
        return true;
      }
      const auto number = static_cast<std::uint32_t>(index_.shards.size());
      const auto known = table_.insert(hash_of(shard), number,
                                       [&](std::uint32_t other) { return index_.shards[other] == shard; });
      if (!known && number == kMaxShards)
        return no(fmt::format("weight_map names more than {} files", kMaxShards));
      if (!known) add_shard(shard);
      last_ = known.value_or(number);
    }
    index_.entries.push_back({tensor, last_});
    return true;
  }

  // The table stays at most half full: it is made anew whenever the number of shards has doubled.
  void add_shard(std::string_view shard) {
    auto& shards = index_.shards;
    shards.emplace_back(shard);
    if (shards.size() < kFewShards || (shards.size() & (shards.size() - 1)) != 0) return;
    table_.reset(2 * shards.size());
    for (std::uint32_t number = 0; number < shards.size(); ++number)
      table_.insert(hash_of(shards[number]), number, [](std::uint32_t) { return false; });
  }

  void refuse(std::string_view tensor, std::string_view value) {
    index_.refused_tensors.emplace(std::string(tensor));
    const std::string shown(value.substr(0, 256));
    auto& values = index_.refused_values;
    if (values.size() < kRefusedShown && std::find(values.begin(), values.end(), shown) == values.end())
      values.push_back(shown);
  }

  JsonScan scan_;
  IndexText& index_;
  NameTable table_;  // of index_.shards
  std::uint32_t last_ = 0;
  std::string fault_;
  bool is_syntax_ = false;
};

bool read_into(std::string_view text, const std::string& name, IndexText& index, Findings& findings) {
  if (auto foreign = foreign_content(std::as_bytes(std::span(text)), name)) {
    findings.push_back(std::move(*foreign));
    return false;
  }
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  Reader reader(text, index);
  if (reader.read()) return true;
  std::string where = name, message = reader.fault();
  if (reader.is_syntax()) {
    const auto place = place_in(text, reader.position());
    where += fmt::format(": byte {}", place.offset);
    message += fmt::format(" (line {}, column {})", place.line, place.column);
  }
  findings.push_back({"IDX_JSON", FindingLevel::kError, FindingKind::kMalformed, std::move(where),
                      std::move(message), "download it again"});
  return false;
}

}  // namespace

void IndexText::keep_last_of_repeated() {
  NameTable seen;
  seen.reset(entries.size());
  std::size_t kept = 0;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const auto earlier =
        seen.insert(hash_of(entries[i].tensor), static_cast<std::uint32_t>(kept),
                    [&](std::uint32_t other) { return entries[other].tensor == entries[i].tensor; });
    if (!earlier) {
      entries[kept++] = entries[i];
      continue;
    }
    if (num_repeated++ == 0) first_repeated = entries[i].tensor.substr(0, 512);
    entries[*earlier] = entries[i];
  }
  entries.resize(kept);
}

std::optional<IndexText> read_index_text(std::string_view text, const std::string& name, Findings& findings) {
  IndexText index;
  if (!read_into(text, name, index, findings)) return std::nullopt;
  return index;
}

std::optional<IndexText> read_index_text(const std::string& path, const std::string& name,
                                         Findings& findings) {
  IndexText index;
  auto mapped = MappedFile::open(path);
  if (!mapped || mapped->bytes().size() > static_cast<std::size_t>(kMaxIndexBytes)) {
    findings.push_back({"IDX_JSON", FindingLevel::kError, FindingKind::kMalformed, name,
                        mapped ? fmt::format("the index has {} bytes, at most {} are read",
                                             mapped->bytes().size(), kMaxIndexBytes)
                               : mapped.error().message,
                        "download it again"});
    return std::nullopt;
  }
  index.text = std::move(*mapped);
  if (!read_into(as_text(index.text.bytes()), name, index, findings)) return std::nullopt;
  return index;
}

}  // namespace plimsoll::artifact
