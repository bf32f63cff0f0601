// SPDX-License-Identifier: Apache-2.0
#include "inspect/model_card.h"

#include <algorithm>

namespace plimsoll::inspect {
namespace {

constexpr std::size_t kMaxText = std::size_t{1} << 20;  // cards are below 200 kB; claims stand at the top
constexpr std::size_t kMaxBlock = 4096;                 // no licence's name is as long
constexpr std::size_t kMaxFields = 4096;                // languages and tags come in hundreds

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\r";
  const std::size_t begin = text.find_first_not_of(kBlanks);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlanks) - begin + 1);
}

std::string_view take_line(std::string_view& rest) {
  const std::size_t end = std::min(rest.find('\n'), rest.size());
  const std::string_view line = rest.substr(0, end);
  rest.remove_prefix(std::min(end + 1, rest.size()));
  return line;
}

/// A scalar without its quotes and without a comment behind it.
std::string scalar(std::string_view value) {
  value = trimmed(value);
  if (!value.empty() && (value.front() == '"' || value.front() == '\'')) {
    const std::size_t end = value.find(value.front(), 1);
    if (end != std::string_view::npos) return std::string(value.substr(1, end - 1));
  }
  return std::string(trimmed(value.substr(0, value.find(" #"))));
}

/// "[a, b]" as its items.
std::vector<std::string> flow_items(std::string_view value) {
  std::vector<std::string> items;
  value = value.substr(1, value.rfind(']') == std::string_view::npos ? value.npos : value.rfind(']') - 1);
  while (!value.empty()) {
    const std::size_t comma = std::min(value.find(','), value.size());
    if (std::string item = scalar(value.substr(0, comma)); !item.empty()) items.push_back(std::move(item));
    value.remove_prefix(std::min(comma + 1, value.size()));
  }
  return items;
}

class FrontMatter {
 public:
  explicit FrontMatter(ModelCard& card) : card_(card) {}

  void read_line(std::string_view line) {
    const bool is_indented = !line.empty() && (line.front() == ' ' || line.front() == '\t');
    const std::string_view content = trimmed(line);
    if (content.empty() || content.front() == '#') return;
    if (content.starts_with("- ")) {
      // A list item of the key above; its own mapping ("- name: x") is of no interest here.
      if (!key_.empty()) add(key_, scalar(content.substr(2)));
      return;
    }
    if (is_indented) {
      if (is_in_block_) continue_block(content);
      return;
    }
    is_in_block_ = false;
    const std::size_t colon = content.find(':');
    if (colon == std::string_view::npos) return;
    key_ = scalar(content.substr(0, colon));
    const std::string_view value = trimmed(content.substr(colon + 1));
    if (value.starts_with("["))
      for (std::string& item : flow_items(value)) add(key_, std::move(item));
    else if (is_in_block_ = value.starts_with("|") || value.starts_with(">"); is_in_block_)
      add(key_, {});  // its lines follow
    else
      add(key_, value == "~" || value == "null" ? std::string() : scalar(value));
  }

 private:
  void add(const std::string& key, std::string value) {
    if (card_.fields.size() < kMaxFields) card_.fields.emplace_back(key, std::move(value));
  }

  // Lines of a block are words of one value here: no field that is read has lines that matter.
  void continue_block(std::string_view line) {
    if (card_.fields.empty()) return;
    std::string& value = card_.fields.back().second;
    if (value.size() < kMaxBlock) value += (value.empty() ? "" : " ") + std::string(line);
  }

  ModelCard& card_;
  std::string key_;
  bool is_in_block_ = false;
};

}  // namespace

std::optional<std::string> ModelCard::field(std::string_view key) const {
  for (const auto& [name, value] : fields)
    if (name == key && !value.empty()) return value;
  return std::nullopt;
}

std::vector<std::string> ModelCard::values(std::string_view key) const {
  std::vector<std::string> found;
  for (const auto& [name, value] : fields)
    if (name == key && !value.empty()) found.push_back(value);
  return found;
}

bool ModelCard::has_prefix(std::string_view prefix) const {
  return std::any_of(fields.begin(), fields.end(),
                     [&](const auto& field) { return field.first.starts_with(prefix); });
}

ModelCard parse_model_card(std::string_view readme) {
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  if (readme.starts_with(kByteOrderMark)) readme.remove_prefix(kByteOrderMark.size());
  ModelCard card;
  std::string_view rest = readme;
  if (trimmed(take_line(rest)) == "---") {
    ModelCard with_fields;
    FrontMatter reader(with_fields);
    while (!rest.empty()) {
      const std::string_view line = take_line(rest);
      if (trimmed(line) == "---") {
        card = std::move(with_fields);
        readme = rest;
        break;
      }
      reader.read_line(line);
    }
  }
  card.text = std::string(readme.substr(0, kMaxText));
  return card;
}

std::optional<ModelCard> read_model_card(const artifact::Artifact& artifact) {
  for (const artifact::File& file : artifact.files())
    if (file.role == artifact::FileRole::kReadme && file.path.find('/') == std::string::npos)
      if (const auto text = artifact.text_file(file.path)) return parse_model_card(*text);
  return std::nullopt;
}

}  // namespace plimsoll::inspect
