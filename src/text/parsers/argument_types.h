// SPDX-License-Identifier: Apache-2.0
// Which JSON value does an argument that was written as text stand for? Answered by the request's tool
// schemas, as vLLM answers it. Owns its copy of the tools; any number of threads may read one.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/json.h"

namespace plimsoll::text {

/// What a text without a declared type is.
enum class UntypedValue {
  kText,  // a string
  kJson,  // JSON or a Python literal when it reads as one, else a string
};

class ArgumentTypes {
 public:
  explicit ArgumentTypes(Json tools) : tools_(std::move(tools)) {}

  bool is_declared(std::string_view tool, std::string_view parameter) const {
    return schema_of(tool, parameter).parameter != nullptr;
  }
  /// True when the value is a string whatever it reads, so that it can be passed on as it arrives.
  bool is_text(std::string_view tool, std::string_view parameter, UntypedValue untyped) const;
  /// JSON text of the value. A text that does not fit its declared type is a string.
  std::string to_json(std::string_view tool, std::string_view parameter, std::string_view text,
                      UntypedValue untyped) const;

 private:
  struct Schema {
    const Json* parameter = nullptr;  // null: not declared
    const Json* root = nullptr;       // what its references point into
  };
  Schema schema_of(std::string_view tool, std::string_view parameter) const;

  Json tools_;
};

/// JSON text of a value that reads as JSON or as a Python literal, else of a string.
std::string json_of_untyped(std::string_view text);

/// Appends `text` escaped as the inside of a JSON string. Bytes above 0x7F stay as they are, so a character
/// may come in two parts.
void append_json_escaped(std::string& out, std::string_view text);
std::string json_string(std::string_view text);

}  // namespace plimsoll::text
