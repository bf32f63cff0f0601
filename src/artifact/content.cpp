// SPDX-License-Identifier: Apache-2.0
#include "artifact/content.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <string>
#include <utility>

#include "artifact/json_scan.h"
#include "base/text.h"

namespace plimsoll::artifact {
namespace {

constexpr std::string_view kLfsMagic = "version https://git-lfs.github.com/spec/";

std::optional<std::int64_t> lfs_size(std::string_view text) {
  const std::size_t at = text.find("\nsize ");
  if (at == std::string_view::npos) return std::nullopt;
  std::int64_t size = 0;
  const char* begin = text.data() + at + 6;
  const auto [end, error] = std::from_chars(begin, text.data() + text.size(), size);
  if (error != std::errc{} || end == begin) return std::nullopt;
  return size;
}

bool looks_like_html(std::string_view text) {
  const std::size_t start = text.find_first_not_of(" \t\r\n");
  if (start == std::string_view::npos) return false;
  const std::string head = lower_ascii(text.substr(start, 14));
  return head.starts_with("<!doctype html") || head.starts_with("<html") || head.starts_with("<?xml");
}

// Protocol 0 is text: GLOBAL is 'c', a module and a name, each on its line.
bool opens_with_global(std::string_view text) {
  if (!text.starts_with('c')) return false;
  const auto name = [&](std::size_t begin, std::size_t end) {
    return end != std::string_view::npos && end > begin && end - begin < 128 &&
           std::all_of(
               text.begin() + static_cast<std::ptrdiff_t>(begin),
               text.begin() + static_cast<std::ptrdiff_t>(end),
               [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.'; });
  };
  const std::size_t module_end = text.find('\n');
  return name(1, module_end) && name(module_end + 1, text.find('\n', module_end + 1));
}

// A header's length, or a magic with its version, has a byte that no text has among the first eight.
bool looks_like_text(std::string_view text) {
  return text.size() >= 8 && std::all_of(text.begin(), text.begin() + 8, [](char c) {
           return (c >= ' ' && c <= '~') || c == '\n' || c == '\r' || c == '\t';
         });
}

bool looks_like_safetensors(std::string_view text) {
  constexpr std::string_view kLengthEnd("\0\0\0\0", 4);  // a header has less than 4 GiB
  return text.size() > 8 && text[8] == '{' && text.substr(4, 4) == kLengthEnd;
}

// What lies under the name of a safetensors or GGUF file, where it is neither; empty when it may be one.
std::string other_content(std::string_view text, std::string_view path) {
  const bool is_gguf_name = path.ends_with(".gguf");
  if (!is_gguf_name && !path.ends_with(".safetensors")) return {};
  if (!is_gguf_name && text.starts_with("GGUF")) return "this is a GGUF file under another name";
  if (is_gguf_name && looks_like_safetensors(text)) return "this is a safetensors file under another name";
  if (!looks_like_text(text) || text.starts_with("GGUF")) return {};
  text.remove_prefix(std::min(text.find_first_not_of(" \t\r\n"), text.size()));
  const auto end = std::find_if(text.begin(), text.end(), [](char c) { return c < ' ' || c > '~'; });
  const std::string_view line = text.substr(0, static_cast<std::size_t>(end - text.begin()));
  return fmt::format("this is {} (\"{}\"), not weights: the server answered with an error",
                     text.starts_with('{') ? "JSON" : "text", line.substr(0, 60));
}

bool ends_with_any(std::string_view text, std::initializer_list<std::string_view> endings) {
  return std::any_of(endings.begin(), endings.end(), [&](auto ending) { return text.ends_with(ending); });
}

bool starts_with_any(std::string_view text, std::initializer_list<std::string_view> starts) {
  return std::any_of(starts.begin(), starts.end(), [&](auto start) { return text.starts_with(start); });
}

// Calls visit(key, text of the value) for the members of an object, as far as it is JSON.
template <class Visit>
void for_each_member(std::string_view object, const Visit& visit) {
  constexpr int kMaxDepth = 200;  // as the reader of trees
  JsonScan scan(object, true);
  if (scan.peek() != '{' || !scan.take('{')) return;
  do {
    std::string key;
    scan.skip_space();
    if (const auto plain = scan.plain_string())
      key = *plain;
    else if (!scan.string(key))
      return;
    if (!scan.take(':')) return;
    scan.skip_space();
    const auto value = scan.value(kMaxDepth);
    if (!value) return;
    visit(key, *value);
  } while (scan.take(','));
}

}  // namespace

std::string_view as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

bool is_lfs_pointer(std::span<const std::byte> bytes) {
  return as_text(bytes.first(std::min<std::size_t>(bytes.size(), 1024))).starts_with(kLfsMagic);
}

bool has_pickle_name(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  const std::string_view name = slash == std::string_view::npos ? path : path.substr(slash + 1);
  // What a trainer leaves beside a checkpoint to go on from it: settings and moments, no weights.
  const bool is_training_state = starts_with_any(
      name, {"training_args", "optimizer", "scheduler", "rng_state", "random_states", "scaler."});
  return ends_with_any(name, {".bin", ".pt", ".pth", ".ckpt"}) && !is_training_state;
}

bool looks_like_pickle(std::span<const std::byte> bytes) {
  const std::string_view text = as_text(bytes.first(std::min<std::size_t>(bytes.size(), 1024)));
  if (text.size() > 8 && text[8] == '{') return false;  // a safetensors header may have such a length
  // Protocols 2 to 5 open with PROTO n; torch.save's archives are zip files with a data.pkl member.
  if (opens_with_global(text)) return true;
  return (text.size() >= 2 && text[0] == '\x80' && text[1] >= 2 && text[1] <= 5) ||
         text.starts_with("PK\x03\x04");
}

std::optional<Finding> foreign_content(std::span<const std::byte> bytes, std::string_view path) {
  const std::string_view text = as_text(bytes.first(std::min<std::size_t>(bytes.size(), 1024)));
  Finding finding{"NOT_WEIGHTS",
                  FindingLevel::kError,
                  FindingKind::kMalformed,
                  std::string(path) + ": byte 0",
                  {},
                  "download the file again"};
  if (text.starts_with(kLfsMagic)) {
    finding.id = "LFS_POINTER";
    const auto size = lfs_size(text);
    finding.message = fmt::format("this is a Git LFS pointer, not {}; it stands for {} bytes",
                                  role_of(path) == FileRole::kWeights ? "weights" : "the file itself",
                                  size ? std::to_string(*size) : "an unknown number of");
    finding.fix = "run `git lfs pull` in the repository, or download the file from the hub";
    return finding;
  }
  if (looks_like_html(text)) {
    finding.message = "this looks like an HTML page, not weights: the server answered with an error page";
    return finding;
  }
  if (looks_like_pickle(bytes)) {
    finding.message =
        "this is a Python pickle under the name of a weights file; it is refused, never unpickled";
    finding.fix = "get the safetensors files of this model";
    return finding;
  }
  if (std::string what = other_content(text, path); !what.empty()) {
    if (what.ends_with("another name")) finding.fix = "give the file the ending of what it is";
    finding.message = std::move(what);
    return finding;
  }
  return std::nullopt;
}

bool holds_tokenizer(std::span<const std::byte> bytes) {
  std::string_view text = as_text(bytes);
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  bool has_model = false, has_list = false, has_config = false;
  for_each_member(text, [&](std::string_view key, std::string_view value) {
    if (key == "vocab") has_list = value.starts_with('[');
    if (key == "config") has_config = value.starts_with('{');
    if (key != "model" || !value.starts_with('{')) return;
    for_each_member(value, [&](std::string_view inner, std::string_view vocab) {
      if (inner == "vocab") has_model = vocab.starts_with('{') || vocab.starts_with('[');
    });
  });
  return has_model || (has_list && has_config);
}

FileRole role_of(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  const std::string name = lower_ascii(slash == std::string_view::npos ? path : path.substr(slash + 1));
  // A variant may stand before the ending: model.safetensors.index.fp16.json.
  if (name.ends_with(".index.json") ||
      (name.ends_with(".json") && name.find(".safetensors.index.") != std::string_view::npos))
    return FileRole::kIndex;
  if (name == "config.json" || name == "params.json") return FileRole::kConfig;
  if (name == "generation_config.json") return FileRole::kGenerationConfig;
  if (starts_with_any(name,
                      {"preprocessor_config", "processor_config", "image_processor", "video_preprocessor"}))
    return FileRole::kProcessor;
  if (name.ends_with(".jinja") || starts_with_any(name, {"chat_template"})) return FileRole::kTemplate;
  if (starts_with_any(
          name, {"tokenizer", "tekken", "vocab.", "merges.txt", "special_tokens_map", "added_tokens"}) ||
      ends_with_any(name, {".tiktoken", ".model"}))
    return FileRole::kTokenizer;
  if (ends_with_any(name, {".safetensors", ".gguf"}) || has_pickle_name(name)) return FileRole::kWeights;
  if (starts_with_any(name, {"license", "licence", "copying", "notice", "use_policy"}))
    return FileRole::kLicense;
  if (starts_with_any(name, {"readme"})) return FileRole::kReadme;
  if (name.ends_with(".py")) return FileRole::kCode;
  return FileRole::kOther;
}

}  // namespace plimsoll::artifact
