// SPDX-License-Identifier: Apache-2.0
// One format's tool calls within content, as the parsers of this folder share it: text comes in, content and
// calls go to a sink. The grammars are rows of grammars.cpp. Reasoning has been taken out before. A parser
// owns what it holds back and serves one answer, from one thread.
#pragma once

#include <memory>
#include <string_view>

#include "text/parsers/argument_types.h"
#include "text/parsers/delta_sink.h"
#include "text/parsers/markers.h"

namespace plimsoll::text {

class ToolParser {
 public:
  virtual ~ToolParser() = default;
  void push(std::string_view text, DeltaSink& sink) {
    pending_.append(text);
    while (step(sink)) {
    }
  }
  /// The answer has ended; whatever is held goes to the sink.
  virtual void finish(DeltaSink& sink) = 0;

 protected:
  /// Settles the beginning of what is pending; false when that takes more text.
  virtual bool step(DeltaSink& sink) = 0;

  Pending pending_;
};

/// Calls that are JSON objects with their name inside, alone or in a list.
struct JsonGrammar {
  std::string_view opens[3] = {};  // any of them opens a section; unused ones are empty
  std::string_view close = {};     // ends a section; empty: it ends where no further object follows
  bool from_start = false;         // an object may also come first in the answer, without a marker
  bool within_text = false;        // ... or within content, where its first member is a name or a type
  bool drops_opens = false;        // the opens are layout before plain text too
  bool needs_arguments = false;    // an object without arguments is content, not a call
};

/// Calls with a header of text and arguments as one JSON value.
enum class HeaderForm {
  kName,       // NAME
  kTypeName,   // function<separator>NAME
  kNameIndex,  // functions.NAME:INDEX, which is the id as well
  kNameId,     // NAME<separator>ID, the second part optional
};
struct SectionGrammar {
  std::string_view open = {};               // of the section
  std::string_view close = {};              // may be empty
  std::string_view call_open = {};          // empty: `open` stands before each call
  std::string_view call_close = {};         // may be empty
  std::string_view arguments_open[2] = {};  // ends the header; "{" is the arguments' own first byte
  std::string_view fence = {};              // around the arguments, closing; may be empty
  HeaderForm form = HeaderForm::kName;
  std::string_view separator = {};  // within the header
  bool takes_list = false;          // a JSON list of calls may stand instead of a header
};

/// Calls whose arguments are tagged texts, one by one.
struct TagGrammar {
  std::string_view outer_open = {};  // around calls; empty: none
  std::string_view outer_close = {};
  std::string_view call_open = {};   // before the name
  std::string_view name_close = {};  // after it
  std::string_view call_close = {};
  std::string_view key_open = {};
  std::string_view key_close = {};
  std::string_view value_open = {};  // empty: the value follows the key's end
  std::string_view value_close = {};
  bool call_needs_outer = false;  // call_open means nothing outside of outer_open
  bool bare_needs_body = true;    // a call outside of outer_open is one where an argument or its end follows
  bool trims_newlines = false;    // one line end after value_open and one before value_close are layout
  std::string_view text_attribute = {};  // beside the key: the value is a text
  std::string_view json_attribute = {};  // ... else this one: it is JSON
  std::string_view layout[3] = {};       // markers around content, dropped
  bool takes_cdata = false;              // a value may be wrapped in <![CDATA[ ]]>
  UntypedValue untyped = UntypedValue::kText;
};

/// Calls as Python writes them: [name(key=literal, ...), ...].
struct PythonicGrammar {
  std::string_view open = {};   // before the list; may be empty
  std::string_view close = {};  // after it
  bool from_start = false;      // the list may come first in the answer, without `open`
  bool lines = false;           // calls stand one per line, without a list around them
};

std::unique_ptr<ToolParser> make_json_call_parser(const JsonGrammar& grammar);
std::unique_ptr<ToolParser> make_section_parser(const SectionGrammar& grammar);
std::unique_ptr<ToolParser> make_tag_parser(const TagGrammar& grammar, const Json& tools);
std::unique_ptr<ToolParser> make_pythonic_parser(const PythonicGrammar& grammar);

}  // namespace plimsoll::text
