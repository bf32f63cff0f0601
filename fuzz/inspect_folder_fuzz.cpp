// SPDX-License-Identifier: Apache-2.0
// A model folder whose files are any bytes: `inspect` answers with a report that prints as JSON and as text
// whenever the folder opens at all, and never crashes. The input is the files in the order below, each ended
// by a NUL; an empty one is not there. What is left are weights: a GGUF file if it begins so, else
// safetensors.
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "artifact/artifact.h"
#include "base/json.h"
#include "fuzz/made_folder.h"
#include "inspect/inspect.h"

namespace {

using namespace plimsoll;

constexpr std::array<std::string_view, 10> kNames{"config.json",
                                                  "generation_config.json",
                                                  "tokenizer_config.json",
                                                  "chat_template.jinja",
                                                  "special_tokens_map.json",
                                                  "README.md",
                                                  "LICENSE",
                                                  "preprocessor_config.json",
                                                  "hf_quant_config.json",
                                                  "tokenizer.json"};

void put_or_remove(const fuzz::MadeFolder& folder, std::string_view name, std::string_view content) {
  if (content.empty())
    folder.remove(name);
  else
    folder.put(name, content);
}

void check(const inspect::Report& report) {
  const auto again = parse_json(dump(inspect::to_json(report)), "report");
  if (!again || !(*again)["findings"].is_array()) std::abort();
  if (inspect::to_text(report).empty()) std::abort();
  for (const char* key : {"total", "active", "mtp", "hub_total"})
    if ((*again)["parameters"][key].as_integer().value_or(0) < 0) std::abort();
  for (const char* key : {"bytes_per_token", "state_bytes_per_sequence", "bytes_per_sequence"})
    if ((*again)["kv_cache"][key].as_integer().value_or(0) < 0) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const fuzz::MadeFolder folder;
  std::string_view rest(reinterpret_cast<const char*>(data), size);
  for (const std::string_view name : kNames) {
    const std::string_view content = rest.substr(0, rest.find('\0'));
    rest.remove_prefix(std::min(rest.size(), content.size() + 1));
    put_or_remove(folder, name, content);
  }
  const bool is_gguf = rest.starts_with("GGUF");
  put_or_remove(folder, "model.gguf", is_gguf ? rest : std::string_view());
  put_or_remove(folder, "model.safetensors", is_gguf ? std::string_view() : rest);
  if (const auto report = inspect::inspect(folder.path(), {.gpu = "H100:2"}))
    check(*report);
  else if (artifact::open(folder.path()))
    std::abort();
  return 0;
}
