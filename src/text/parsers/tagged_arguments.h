// SPDX-License-Identifier: Apache-2.0
// One call's arguments, written as tagged texts, as the JSON object they stand for: goes to a sink value by
// value, texts as they come. Finding the tags is left to the tag parser. One per parser, one thread.
#pragma once

#include <set>
#include <string>
#include <string_view>

#include "text/parsers/argument_types.h"
#include "text/parsers/delta_sink.h"
#include "text/parsers/tool_parser.h"

namespace plimsoll::text {

class TaggedArguments {
 public:
  TaggedArguments(const TagGrammar& grammar, const Json& tools) : grammar_(grammar), types_(tools) {}

  void begin_call(std::string_view tool);
  /// `header`: the key, perhaps in quotes, and its attributes.
  void begin_value(std::string_view header, DeltaSink& sink);
  /// Part of the value's text.
  void add(std::string_view text, DeltaSink& sink);
  void end_value(DeltaSink& sink);
  void end_call(DeltaSink& sink);
  /// The answer ends within a value: a text stays open, another value is what it reads as.
  void cut_value(DeltaSink& sink);

  bool is_empty() const { return keys_.empty(); }
  /// Where the end tag of a value may be missing: a declared key that has not come yet, at the start of a
  /// line.
  bool goes_on_with(std::string_view key) const;

 private:
  void begin_member(DeltaSink& sink);

  TagGrammar grammar_;
  ArgumentTypes types_;
  std::set<std::string, std::less<>> keys_;  // of the call so far
  std::string key_;
  ArgumentType type_;     // of the value
  bool is_json_ = false;  // an attribute says so
  bool streams_ = false;  // the value is a text and is passed on as it comes
  bool is_start_ = true;  // of the value
  std::string value_;  // all of it; of a text that is passed on, the line end that may turn out to be layout
};

/// What stands in quotes at the start of `text`, or all of it.
std::string_view unquoted(std::string_view text);

}  // namespace plimsoll::text
