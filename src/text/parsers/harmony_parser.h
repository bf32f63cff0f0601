// SPDX-License-Identifier: Apache-2.0
// gpt-oss' format (harmony): messages with a channel and a recipient. One parser for reasoning and calls,
// because both are told by the same header.
#pragma once

#include <string>
#include <string_view>

#include "text/parsers/delta_sink.h"
#include "text/parsers/markers.h"
#include "text/parsers/tool_names.h"

namespace plimsoll::text {

class HarmonyParser {
 public:
  /// `reads_calls` false: a call's arguments are content, as is what is sent to no tool of `tools`.
  HarmonyParser(bool reads_calls, const Json& tools) : reads_calls_(reads_calls), names_(tools) {}
  void push(std::string_view text, DeltaSink& sink);
  void finish(DeltaSink& sink);

 private:
  enum class State { kStart, kHeader, kBody, kBetween };
  enum class Target { kReasoning, kContent, kCall };

  bool step(DeltaSink& sink);
  bool read_start();
  bool read_header(DeltaSink& sink);
  bool read_body(DeltaSink& sink);
  bool read_between(DeltaSink& sink);
  void begin_message(DeltaSink& sink);
  void body(std::string_view text, DeltaSink& sink);
  void end_message(DeltaSink& sink);

  bool reads_calls_;
  ToolNames names_;
  Pending pending_;
  State state_ = State::kStart;
  Target target_ = Target::kContent;
  std::string header_;
  std::string blanks_;  // at the end of a call's arguments, layout unless more follows
  bool has_arguments_ = false;
  bool has_text_between_ = false;  // messages; blanks alone are layout
};

}  // namespace plimsoll::text
