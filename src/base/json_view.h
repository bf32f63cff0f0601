// SPDX-License-Identifier: Apache-2.0
// Reads a JSON document without building a tree of it: parsed once into a flat tape, then walked. For large
// ones (a tokenizer of 30 MB), and for many small ones (the events of a stream). A view costs nothing to copy
// and lives as long as its document. Walking is safe from any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/json.h"

namespace plimsoll {

class JsonView {
 public:
  /// An absent value: every question about it is answered as for null.
  JsonView() = default;

  bool is_null() const;
  bool is_object() const;
  bool is_array() const;
  std::optional<std::string_view> as_string() const;
  std::optional<std::int64_t> as_integer() const;
  std::optional<double> as_double() const;  // any number
  std::optional<bool> as_bool() const;
  /// Elements or members (duplicates counted), else 0. Linear.
  std::size_t size() const;

  /// The last member named `key`; absent when there is none. Linear.
  JsonView operator[](std::string_view key) const;
  /// Element `index` of an array; absent when there is none. Linear.
  JsonView item(std::size_t index) const;
  /// Walks an object's members or an array's elements in order (nothing for other values), until a call says
  /// no: its error is returned.
  Status for_each_member(const std::function<Status(std::string_view key, JsonView value)>& visit) const;
  Status for_each_item(const std::function<Status(JsonView item)>& visit) const;

  /// This value as a tree: for the small parts of a large document.
  Json to_json() const;

 private:
  friend struct JsonViewAccess;
  // What simdjson's element is: its document and a place on the tape. Null: absent.
  const void* document_ = nullptr;
  std::size_t place_ = 0;
};

/// Reads many small documents one after the other and allocates nothing for the next one: for streams, where
/// each event is a document. One thread at a time.
class JsonReader {
 public:
  JsonReader();
  JsonReader(JsonReader&&) noexcept;
  JsonReader& operator=(JsonReader&&) noexcept;
  ~JsonReader();

  /// The root of `text`, valid until the next call. Takes exactly what parse_json takes; what JSON cannot
  /// say (NaN, Infinity) reads as null. Errors: as parse_json.
  Result<JsonView> read(std::string_view text, std::string_view source);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

class JsonDocument {
 public:
  /// Errors: as parse_json; NaN and integers beyond 64 bits are refused.
  static Result<JsonDocument> parse(std::string text, std::string_view source);
  JsonView root() const;

  JsonDocument(JsonDocument&&) noexcept;
  JsonDocument& operator=(JsonDocument&&) noexcept;
  ~JsonDocument();

 private:
  struct State;
  explicit JsonDocument(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace plimsoll
