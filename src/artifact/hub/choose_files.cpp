// SPDX-License-Identifier: Apache-2.0
#include "artifact/hub/choose_files.h"

#include <algorithm>
#include <set>

#include "artifact/content.h"
#include "artifact/index_text.h"
#include "base/units.h"

namespace plimsoll::artifact {
namespace {

constexpr std::int64_t kMaxSmall = 64 * kMiB;  // what json_file() reads at most
constexpr std::int64_t kMaxOther = 1 * kMiB;   // other JSON files of the top folder (quantize_config.json)

bool is_top(const HubFile& file) {
  return file.path.find('/') == std::string::npos;
}

// What a module of Sentence Transformers says of itself: "1_Pooling/config.json".
bool is_module_config(const HubFile& file) {
  const auto digits = file.path.find_first_not_of("0123456789");
  const auto slash = file.path.find('/');
  return digits > 0 && digits != std::string::npos && file.path[digits] == '_' &&
         file.path.substr(slash + 1) == "config.json" && file.bytes <= kMaxOther;
}

bool is_small(const HubFile& file) {
  if (file.bytes > (role_of(file.path) == FileRole::kIndex ? kMaxIndexBytes : kMaxSmall)) return false;
  if (is_module_config(file)) return true;
  // Named templates lie in a folder of their own; all else below folders belongs to other components.
  if (!is_top(file) && !file.path.starts_with("additional_chat_templates/")) return false;
  switch (role_of(file.path)) {
    case FileRole::kIndex:
    case FileRole::kConfig:
    case FileRole::kGenerationConfig:
    case FileRole::kTokenizer:
    case FileRole::kTemplate:
    case FileRole::kProcessor:
    case FileRole::kLicense:
    case FileRole::kReadme:
      return true;
    case FileRole::kOther:
      return file.bytes <= kMaxOther && file.path.ends_with(".json");
    case FileRole::kWeights:
    case FileRole::kCode:
      return false;
  }
  return false;
}

}  // namespace

const HubFile* find_hub_file(const std::vector<HubFile>& files, std::string_view path) {
  const auto found =
      std::find_if(files.begin(), files.end(), [&](const HubFile& file) { return file.path == path; });
  return found == files.end() ? nullptr : &*found;
}

std::vector<HubFile> small_files(const std::vector<HubFile>& files) {
  std::vector<HubFile> small;
  std::copy_if(files.begin(), files.end(), std::back_inserter(small), is_small);
  return small;
}

WeightSet weight_set(const std::vector<HubFile>& files) {
  std::vector<std::string_view> paths;
  paths.reserve(files.size());
  for (const HubFile& file : files) paths.push_back(file.path);
  std::sort(paths.begin(), paths.end());
  return choose_weight_set(paths);
}

std::optional<std::vector<std::string>> weight_files(const std::vector<HubFile>& files, const WeightSet& set,
                                                     const std::optional<std::vector<std::string>>& indexed) {
  if (set.index.empty()) return set.files;
  if (!indexed) return std::nullopt;
  const std::set<std::string_view> names(indexed->begin(), indexed->end());
  std::vector<std::string> there;
  for (const HubFile& file : files)
    if (names.contains(file.path)) there.push_back(file.path);
  return there;
}

bool has_tokenizer_file(const std::vector<HubFile>& files) {
  return std::any_of(files.begin(), files.end(), [](const HubFile& file) {
    return is_top(file) && role_of(file.path) == FileRole::kTokenizer && file.path != "tokenizer_config.json";
  });
}

namespace {

// One [...] at `pattern`[at]; the place behind it, or npos when it is never closed.
std::size_t match_set(std::string_view pattern, std::size_t at, char c, bool& is_match) {
  std::size_t i = at + 1;
  const bool is_negated = i < pattern.size() && pattern[i] == '!';
  if (is_negated) ++i;
  bool is_in = false;
  for (const std::size_t first = i; i < pattern.size() && (pattern[i] != ']' || i == first); ++i) {
    if (i + 2 < pattern.size() && pattern[i + 1] == '-' && pattern[i + 2] != ']') {
      is_in |= c >= pattern[i] && c <= pattern[i + 2];
      i += 2;
    } else {
      is_in |= c == pattern[i];
    }
  }
  if (i >= pattern.size()) return std::string_view::npos;
  is_match = is_in != is_negated;
  return i + 1;
}

}  // namespace

bool matches_glob(std::string_view path, std::string_view pattern_text) {
  std::string pattern(pattern_text);
  if (pattern.ends_with('/')) pattern += '*';
  // Where the last star stands and how much it has taken: going back there is enough.
  std::size_t p = 0, s = 0, star = std::string::npos, taken = 0;
  while (s < path.size()) {
    bool is_match = false;
    std::size_t next = p + 1;
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      taken = s;
      continue;
    }
    if (p < pattern.size() && pattern[p] == '[') {
      next = match_set(pattern, p, path[s], is_match);
      if (next == std::string::npos) {
        next = p + 1;
        is_match = path[s] == '[';
      }
    } else if (p < pattern.size()) {
      is_match = pattern[p] == '?' || pattern[p] == path[s];
    }
    if (is_match) {
      p = next;
      ++s;
    } else if (star != std::string::npos) {
      p = star + 1;
      s = ++taken;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

}  // namespace plimsoll::artifact
