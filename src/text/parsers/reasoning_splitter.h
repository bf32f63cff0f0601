// SPDX-License-Identifier: Apache-2.0
// Where in an answer does the reasoning end and the content begin? Tells the parts apart by their tags; what
// the content holds is left to the tool parsers. One per answer, one thread.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "text/parsers/markers.h"
#include "text/parsers/output_parser.h"

namespace plimsoll::text {

struct ReasoningGrammar {
  std::string_view open = {};
  std::string_view close = {};
  /// What the answer starts with when neither it nor the prompt has the start tag.
  enum class Untagged {
    kReasoning,  // until the end tag comes
    kContent,    // until a start tag comes
    kNone,       // content; only the prompt opens the reasoning
  } untagged = Untagged::kReasoning;
  std::string_view content_open = {};  // at the end of a prompt it says that there is no reasoning
  std::string_view call_open = {};  // ends the reasoning too, when tool calls are parsed; empty: nothing does
  std::string_view call_follows[2] =
      {};  // ... provided one of these follows it; both empty: whatever follows
};

class ReasoningSplitter {
 public:
  using Part = std::function<void(std::string_view)>;
  /// `ends_at_calls`: tool calls are parsed, so that one may end the reasoning.
  ReasoningSplitter(const ReasoningGrammar& grammar, ReasoningStart start, bool ends_at_calls);

  void push(std::string_view text, const Part& reasoning, const Part& content);
  void finish(const Part& reasoning, const Part& content);

 private:
  enum class State { kStart, kClosed, kBefore, kReasoning, kMaybeCall, kContent };

  bool step(const Part& reasoning, const Part& content);
  bool read_start();
  bool read_closed(const Part& content);
  bool read_before(const Part& content);
  bool read_reasoning(const Part& reasoning, const Part& content);
  bool read_maybe_call(const Part& reasoning, const Part& content);

  ReasoningGrammar grammar_;
  bool ends_at_calls_;
  State state_;
  Pending pending_;
  std::string held_;  // blanks before a first tag; a call's marker and the blanks after it
};

}  // namespace plimsoll::text
