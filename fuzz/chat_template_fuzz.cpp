// SPDX-License-Identifier: Apache-2.0
// Any text as a chat template; its first byte also chooses the conversation. The interpreter's own accounting
// is the oracle: under small limits a render ends within them or says so, and what ends under small limits
// says the same under the usual ones.
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "text/chat.h"
#include "text/jinja/interpreter.h"
#include "text/jinja/parser.h"

namespace {

using plimsoll::Json;
using plimsoll::text::jinja::Interpreter;
using plimsoll::text::jinja::Limits;

constexpr const char* kNow = "2026-01-15T09:30:00";

const Json& conversation(std::uint8_t choice) {
  static const auto kAll = [] {
    constexpr std::array kTexts = {
        R"({"messages":[{"role":"system","content":"Be kind."},{"role":"user","content":[{"type":"text","text":"é"}]},
            {"role":"assistant","content":null,"tool_calls":[{"function":{"name":"f","arguments":{"a":[1,2.5,true]}}}]}],
            "tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object","properties":{}}}}],
            "add_generation_prompt":true,"bos_token":"<s>","eos_token":"</s>"})",
        R"({"messages":[{"role":"user","content":"hi"}]})", R"({"messages":[]})",
        R"({"messages":[{"role":"user","content":""},{"role":"tool","content":"\u0000<&>'\"","name":"f"},
            {"role":"assistant","content":"a","reasoning_content":"b"}],"tools":[],"add_generation_prompt":false})",
        R"({"messages":[{"role":"assistant","content":{"deep":[[[{"k":[null,-0.0,1e300,9223372036854775807]}]]]}}],
            "bos_token":"","documents":[{"title":"t","text":"ﬁ²ß"}]})"};
    std::array<Json, kTexts.size()> parsed;
    for (std::size_t i = 0; i < parsed.size(); ++i) parsed[i] = *plimsoll::parse_json(kTexts[i], "context");
    return parsed;
  }();
  return kAll[choice % kAll.size()];
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const Json& context = conversation(data[0]);
  const std::string_view source(reinterpret_cast<const char*>(data), size);
  const auto program = plimsoll::text::jinja::parse(source);
  if (!program) return 0;
  Limits small;
  small.steps = 20'000;
  small.made_bytes = 4 << 20;
  small.output_bytes = 1 << 20;
  const auto first = Interpreter(**program, kNow, small).run(context);
  if (first && first->size() > small.output_bytes) std::abort();
  if (!first && first.error().type == "LimitError") return 0;  // more of the same under larger limits
  const auto second = Interpreter(**program, kNow).run(context);
  if (first.has_value() != second.has_value()) std::abort();
  if (first ? *first != *second : first.error().message != second.error().message) std::abort();
  return 0;
}
