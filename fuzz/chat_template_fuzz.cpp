// SPDX-License-Identifier: Apache-2.0
// Any text as a chat template, rendered over a conversation with tools: an error or a text, within the
// limits.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "text/chat.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const plimsoll::Json context = *plimsoll::parse_json(
      R"({"messages":[{"role":"system","content":"Be kind."},{"role":"user","content":[{"type":"text","text":"é"}]},
          {"role":"assistant","content":null,"tool_calls":[{"function":{"name":"f","arguments":{"a":[1,2.5,true]}}}]}],
          "tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object","properties":{}}}}],
          "add_generation_prompt":true,"bos_token":"<s>","eos_token":"</s>"})",
      "context");
  const auto parsed =
      plimsoll::text::ChatTemplate::parse(std::string_view(reinterpret_cast<const char*>(data), size));
  if (!parsed) return 0;
  plimsoll::text::ChatOptions options;
  options.now = "2026-01-15T09:30:00";
  (void)plimsoll::text::render_chat(**parsed, context, options);
  return 0;
}
