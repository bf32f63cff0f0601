// SPDX-License-Identifier: Apache-2.0
// A JSON value as a plain tree: reading (strict, bounded in depth), looking up, and writing.
// The one place that knows a JSON library; the tree owns its memory and may be shared read-only by threads.
// Objects keep the order and the duplicates of their text; look-up takes the last of equal keys, as Python
// does.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "base/result.h"

namespace plimsoll {

class Json {
 public:
  using Array = std::vector<Json>;
  using Member = std::pair<std::string, Json>;
  using Object = std::vector<Member>;

  Json() = default;  // null
  Json(std::nullptr_t) {}
  Json(bool value) : value_(value) {}
  template <class T>
    requires(std::is_integral_v<T> && !std::is_same_v<T, bool>)
  Json(T value) {
    // Values above 2^63-1 are kept as the nearest double: no count in this program is that large.
    if constexpr (std::is_unsigned_v<T> && sizeof(T) == 8) {
      if (value > static_cast<T>(INT64_MAX)) {
        value_ = static_cast<double>(value);
        return;
      }
    }
    value_ = static_cast<std::int64_t>(value);
  }
  Json(double value) : value_(value) {}
  Json(float value) : value_(static_cast<double>(value)) {}
  Json(std::string value) : value_(std::move(value)) {}
  Json(std::string_view value) : value_(std::string(value)) {}
  Json(const char* value) : value_(std::string(value)) {}
  Json(Array value) : value_(std::move(value)) {}
  Json(Object value) : value_(std::move(value)) {}
  template <class T>
  Json(const std::optional<T>& value) {
    if (value) *this = Json(*value);
  }

  static Json object(std::initializer_list<Member> members = {}) { return Json(Object(members)); }
  static Json array() { return Json(Array{}); }

  bool is_null() const { return std::holds_alternative<std::monostate>(value_); }
  bool is_bool() const { return std::holds_alternative<bool>(value_); }
  bool is_integer() const { return std::holds_alternative<std::int64_t>(value_); }
  bool is_double() const { return std::holds_alternative<double>(value_); }
  bool is_number() const { return is_integer() || is_double(); }
  bool is_string() const { return std::holds_alternative<std::string>(value_); }
  bool is_array() const { return std::holds_alternative<Array>(value_); }
  bool is_object() const { return std::holds_alternative<Object>(value_); }

  // Typed views: nothing when the value has another type. as_integer also takes a double that is whole (8.0).
  std::optional<bool> as_bool() const;
  std::optional<std::int64_t> as_integer() const;
  std::optional<double> as_double() const;  // any number
  const std::string* as_string() const { return std::get_if<std::string>(&value_); }

  // Contents; empty when the value has another type.
  const Array& items() const;
  const Object& members() const;
  std::size_t size() const;  // elements or members, else 0

  /// The member named `key`, or null when absent or when this is no object. Linear: iterate members() of
  /// large ones.
  const Json& operator[](std::string_view key) const;
  bool contains(std::string_view key) const;
  /// Value at an RFC 6901 pointer ("/a/0/b"), or null.
  const Json& at_pointer(std::string_view pointer) const;

  // Building. set() replaces or appends; both turn a null into an object or array first.
  Json& set(std::string_view key, Json value);
  Json& push_back(Json value);
  Array& mutable_items();
  Object& mutable_members();

  bool operator==(const Json&) const = default;

 private:
  std::variant<std::monostate, bool, std::int64_t, double, std::string, Array, Object> value_;
};

struct JsonReadOptions {
  int max_depth = 200;                   // nesting beyond it is refused
  std::int64_t max_values = 50'000'000;  // a tree takes some 50 bytes for each; more are refused
  bool allow_bare_constants = true;      // NaN, Infinity, -Infinity as Python's json writes them
};

/// Parses one JSON document. Integers beyond 64 bits become doubles (1e30 in tokenizer configs).
/// Errors: kMalformed with `source` and the byte offset or the reason: not UTF-8, bad syntax, trailing text,
/// too deep, too many values.
Result<Json> parse_json(std::string_view text, std::string_view source, const JsonReadOptions& options = {});

/// Reads and parses a file. Errors: kMalformed when absent, unreadable, larger than `max_bytes`, or not JSON.
Result<Json> read_json_file(const std::string& path, std::int64_t max_bytes = std::int64_t{256} << 20);

/// One line, `": "`- and `", "`-free; doubles as the shortest text that reads back the same (integral ones
/// keep ".0"), NaN and infinities as null; bytes that are not UTF-8 become U+FFFD. Non-ASCII text is written
/// as it is.
std::string dump(const Json& value);
/// The same over several lines, `indent` spaces per level, arrays of numbers on one line, newline at the end.
std::string dump_pretty(const Json& value, int indent = 2);

/// Appends `text` as a JSON string with its quotes.
void append_json_string(std::string& out, std::string_view text);
/// Shortest text that reads back as the same double.
std::string format_double(double value);

}  // namespace plimsoll
