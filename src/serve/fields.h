// SPDX-License-Identifier: Apache-2.0
// Does a JSON object hold the fields a request may have, each of its type and in its range? Reads one field
// at a time and keeps the first thing that is wrong, so that a reader states its fields in a row and asks
// once at the end. Refers to the object given; used by one thread.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "base/json.h"
#include "serve/api_error.h"

namespace plimsoll::serve {

/// A range of numbers; `above` excludes the low end.
struct NumberRange {
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();
  bool excludes_low = false;
};

class Fields {
 public:
  /// `object` must outlive the reader. `prefix` stands before every name in messages ("stream_options.").
  explicit Fields(const Json& object, std::string prefix = {});

  /// The member as it stands, or null when absent. The last of equal keys counts.
  const Json& raw(std::string_view name) const;
  /// Present and not null.
  bool has(std::string_view name) const;

  // Nothing when the field is absent, null or wrong; what is wrong is kept.
  std::optional<bool> boolean(std::string_view name);
  std::optional<std::int64_t> integer(std::string_view name,
                                      std::int64_t low = std::numeric_limits<std::int64_t>::min(),
                                      std::int64_t high = std::numeric_limits<std::int64_t>::max());
  std::optional<double> number(std::string_view name, const NumberRange& range = {});
  std::optional<std::string> string(std::string_view name);

  /// Keeps a fault about `name` unless there is one already.
  void fault(std::string_view name, std::string message, std::optional<std::string> code = {});
  void fault(ApiError error);
  const std::optional<ApiError>& error() const { return error_; }

 private:
  std::unordered_map<std::string_view, const Json*> members_;
  std::string prefix_;
  std::optional<ApiError> error_;
};

}  // namespace plimsoll::serve
