// SPDX-License-Identifier: Apache-2.0
// Reading JSON that is still being written: where does one value end, and what call does an object name?
// Keeps no tree and does not recurse, so any depth costs one counter. Checks no more than it needs to find
// the end.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "text/parsers/delta_sink.h"

namespace plimsoll::text {

/// Finds the end of one JSON value. Its first byte must not be a blank.
class JsonValueScanner {
 public:
  void start() { *this = {}; }
  /// Bytes of `text` that still belong to the value. A scalar ends before a blank , } ] or <. One of `ends`
  /// outside of a string ends any value, whatever brackets are open; what may become one is not taken yet.
  std::size_t scan(std::string_view text, std::span<const std::string_view> ends = {});
  bool is_done() const { return done_; }

 private:
  int depth_ = 0;
  bool started_ = false;
  bool scalar_ = false;
  bool in_string_ = false;
  bool escaped_ = false;
  bool done_ = false;
};

/// Reads one {"name": ..., "arguments": {...}} and hands the call to a sink: the name once it is whole, the
/// arguments as they come. "parameters" stands for arguments, "tool_name" for the name; other members are
/// skipped; an object is taken out of a string; null or nothing is {}.
class JsonCallReader {
 public:
  using Ends = std::array<std::string_view, 4>;
  /// `ends`: markers that no value can hold outside of its strings; unused ones are empty.
  JsonCallReader(bool needs_arguments, const Ends& ends) : needs_arguments_(needs_arguments), ends_(ends) {}

  enum class State { kMore, kDone, kFailed };
  /// `has_marker` false: no marker says that the object is a call, so it fails at the first member that calls
  /// do not have.
  void start(bool has_marker = true);
  /// Reads on from `text` and returns how many bytes it took; a byte that cannot follow is not taken, nor is
  /// what may become one of the ends.
  std::size_t read(std::string_view text, DeltaSink& sink);
  /// The text ends within the object, `rest` not taken: what is known of a begun call goes to the sink.
  void cut(std::string_view rest, DeltaSink& sink);

  State state() const { return state_; }
  bool has_begun() const { return begun_; }
  /// Failed by its members: an object, but no call.
  bool is_other_object() const { return is_other_object_; }
  /// The object as far as it was read, kept while no call has begun.
  const std::string& raw() const { return raw_; }

 private:
  enum class Place { kOpen, kKey, kKeyText, kColon, kValue, kValueText, kNext };
  enum class Role { kName, kArguments, kOther };

  std::size_t read_value(std::string_view text, DeltaSink& sink);
  bool take(char c, DeltaSink& sink);
  bool take_colon();
  bool begin_value(char c, DeltaSink& sink);
  void value_ended(DeltaSink& sink);
  void object_ended(DeltaSink& sink);
  void begin_when_known(DeltaSink& sink);
  void add_arguments(std::string_view text, DeltaSink& sink);

  bool needs_arguments_;
  Ends ends_;
  State state_ = State::kMore;
  Place place_ = Place::kOpen;
  Role role_ = Role::kOther;
  JsonValueScanner scanner_;
  bool has_marker_ = true;
  bool is_other_object_ = false;
  bool begun_ = false;
  bool has_name_ = false;
  bool has_arguments_ = false;  // a value has been seen
  bool streams_value_ = false;  // the arguments are a container, passed on as they come
  std::string key_;             // with its quotes
  std::string value_;           // of a name, or arguments that are no container
  std::string name_;
  std::string held_arguments_;  // until the name is known
  std::string raw_;
};

}  // namespace plimsoll::text
