// SPDX-License-Identifier: Apache-2.0
// Where in an answer does the reasoning end and the content begin? Tells the parts apart by their tags; what
// the content holds is left to the tool parsers. One per answer, one thread.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <utility>

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
  /// ... provided one of these follows it, blanks aside; both empty: whatever follows. Only the first byte
  /// of a follower may be a brace.
  std::string_view call_follows[2] = {};
  bool name_comes_first = false;  // ... behind a tool's name
};

class ReasoningSplitter {
 public:
  using Part = std::function<void(std::string_view)>;
  /// `ends_at_calls`: tool calls are parsed, so that one may end the reasoning.
  ReasoningSplitter(const ReasoningGrammar& grammar, ReasoningStart start, bool ends_at_calls);

  void push(std::string_view text, const Part& reasoning, const Part& content);
  void finish(const Part& reasoning, const Part& content);
  /// The end tag that is still to come when a call ended the reasoning: said once, before the call is handed
  /// on. Empty: none.
  std::string_view take_unclosed() { return std::exchange(unclosed_, {}); }

 private:
  enum class State { kStart, kClosed, kClosedOpen, kBefore, kReasoning, kMaybeCall, kContent };

  bool step(const Part& reasoning, const Part& content);
  bool skip_blanks();
  bool read_start();
  bool read_closed(const Part& content);
  bool read_before(const Part& content);
  bool read_reasoning(const Part& reasoning, const Part& content);
  bool read_maybe_call(const Part& reasoning, const Part& content);
  bool takes_into_lead(char c) const;
  Match call_follower() const;
  void end_at_call(const Part& content);

  ReasoningGrammar grammar_;
  bool ends_at_calls_;
  State state_;
  Pending pending_;
  std::string held_;  // blanks before a first tag; a call's marker and what follows it, while it may be none
  std::string lead_;  // behind a call's marker: the name or the brace, and a blank where some follow it
  std::string_view unclosed_;
};

}  // namespace plimsoll::text
