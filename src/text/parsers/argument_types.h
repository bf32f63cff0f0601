// SPDX-License-Identifier: Apache-2.0
// Which JSON value does an argument that was written as text stand for? Answered by the request's tool
// schemas, as vLLM answers it. Owns its copy of the tools; one per parser, one thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/json.h"

namespace plimsoll::text {

/// What a text without a declared type is.
enum class UntypedValue {
  kText,  // a string
  kJson,  // JSON or a Python literal when it reads as one, else a string
};

enum class ArgumentKind { kText, kNull, kInteger, kNumber, kBoolean, kContainer, kOther };

/// What the schema of one parameter admits.
class ArgumentType {
 public:
  ArgumentType() = default;  // the schema says nothing
  /// `root`: what the references of the schema point into.
  ArgumentType(const Json& schema, const Json& root);

  /// True when the value is a string whatever it reads, so that it can be passed on as it arrives.
  bool is_text(UntypedValue untyped) const;
  /// JSON text of the value. A text that does not fit its declared type is a string.
  std::string to_json(std::string_view text, UntypedValue untyped) const;
  /// In the schema's order, each once; empty when it says nothing.
  const std::vector<ArgumentKind>& kinds() const { return kinds_; }

 private:
  std::vector<ArgumentKind> kinds_;
};

class ArgumentTypes {
 public:
  explicit ArgumentTypes(Json tools);
  ArgumentTypes(const ArgumentTypes&) = delete;
  ArgumentTypes& operator=(const ArgumentTypes&) = delete;

  /// The tool whose parameters are asked for from now on.
  void begin_call(std::string_view tool);
  bool is_declared(std::string_view parameter) const;
  ArgumentType type_of(std::string_view parameter) const;

 private:
  /// Indexed when it is first called: answers may name every tool and parameter of a long request.
  struct Tool {
    const Json* root = nullptr;
    bool is_indexed = false;
    std::unordered_map<std::string_view, const Json*> parameters = {};
  };

  Json tools_;
  std::unordered_map<std::string_view, Tool> by_name_;  // into tools_
  const Tool* tool_ = nullptr;                          // null: not among them
};

/// JSON text of a value that reads as JSON or as a Python literal, else of a string.
std::string json_of_untyped(std::string_view text);

/// Appends `text` escaped as the inside of a JSON string. Bytes above 0x7F stay as they are, so a character
/// may come in two parts.
void append_json_escaped(std::string& out, std::string_view text);
std::string json_string(std::string_view text);

}  // namespace plimsoll::text
