// SPDX-License-Identifier: Apache-2.0
// A hub's JSON over any bytes: no crash, and no name that could leave the cache's folder. The first byte
// chooses which answer it is read as.
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "artifact/hub/header_reads.h"
#include "artifact/hub/listing.h"
#include "artifact/hub/url.h"
#include "base/json.h"

namespace {

void check_names(const std::vector<plimsoll::artifact::HubFile>& files) {
  for (const auto& file : files)
    if (!plimsoll::artifact::is_safe_name(file.path) || file.bytes < 0 || file.etag().empty())
      __builtin_trap();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace plimsoll::artifact;
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  if (data[0] == 'u') {
    const auto base = parse_url("https://huggingface.co/a/b");
    if (const auto url = resolve_url(*base, text); url && url->scheme != "http" && url->scheme != "https")
      __builtin_trap();
    return 0;
  }
  const auto json = plimsoll::parse_json(text, "input", {.max_depth = 64, .allow_bare_constants = false});
  if (!json) return 0;
  std::vector<HubFile> files;
  if (data[0] == 't' && read_tree_page(*json, files) && check_tree(files)) check_names(files);
  if (data[0] == 'c')
    if (const auto tree = read_cached_tree(*json)) check_names(*tree);
  if (data[0] == 'i')
    if (const auto info = read_info(*json); info && !is_commit(info->commit)) __builtin_trap();
  if (data[0] == 'h')
    if (const auto head = safetensors_head(*json, 4096); head.size() > 4096) __builtin_trap();
  return 0;
}
