// SPDX-License-Identifier: Apache-2.0
#include "serve/fields.h"

#include <fmt/format.h>

#include <cmath>

namespace plimsoll::serve {
namespace {

const Json kNull;

std::string type_name(const Json& value) {
  if (value.is_null()) return "null";
  if (value.is_bool()) return "a boolean";
  if (value.is_number()) return "a number";
  if (value.is_string()) return "a string";
  return value.is_array() ? "a list" : "an object";
}

}  // namespace

Fields::Fields(const Json& object, std::string prefix) : prefix_(std::move(prefix)) {
  for (const auto& [name, value] : object.members()) members_[name] = &value;
}

const Json& Fields::raw(std::string_view name) const {
  const auto found = members_.find(name);
  return found == members_.end() ? kNull : *found->second;
}

bool Fields::has(std::string_view name) const {
  return !raw(name).is_null();
}

void Fields::fault(ApiError error) {
  if (!error_) error_ = std::move(error);
}

void Fields::fault(std::string_view name, std::string message, std::optional<std::string> code) {
  fault(bad_request(std::move(message), prefix_ + std::string(name), std::move(code)));
}

std::optional<bool> Fields::boolean(std::string_view name) {
  const Json& value = raw(name);
  if (value.is_null()) return std::nullopt;
  if (!value.is_bool())
    fault(name, fmt::format("{}{} must be true or false, got {}", prefix_, name, type_name(value)));
  return value.as_bool();
}

std::optional<std::int64_t> Fields::integer(std::string_view name, std::int64_t low, std::int64_t high) {
  const Json& value = raw(name);
  if (value.is_null()) return std::nullopt;
  const auto number = value.as_integer();
  if (!number) {
    fault(name, fmt::format("{}{} must be an integer, got {}", prefix_, name,
                            value.is_number() ? dump(value) : type_name(value)));
    return std::nullopt;
  }
  if (*number < low || *number > high) {
    fault(name,
          high == std::numeric_limits<std::int64_t>::max()
              ? fmt::format("{}{} must be at least {}, got {}", prefix_, name, low, *number)
              : fmt::format("{}{} must be between {} and {}, got {}", prefix_, name, low, high, *number));
    return std::nullopt;
  }
  return number;
}

std::optional<double> Fields::number(std::string_view name, const NumberRange& range) {
  const Json& value = raw(name);
  if (value.is_null()) return std::nullopt;
  const auto number = value.as_double();
  if (!number || !std::isfinite(*number)) {
    fault(name, fmt::format("{}{} must be a number, got {}", prefix_, name, type_name(value)));
    return std::nullopt;
  }
  const bool is_low = range.excludes_low ? *number <= range.low : *number < range.low;
  if (is_low || *number > range.high) {
    const std::string bound =
        fmt::format("{} {}", range.excludes_low ? "greater than" : "at least", range.low);
    fault(name, std::isinf(range.high) ? fmt::format("{}{} must be {}, got {}", prefix_, name, bound, *number)
                                       : fmt::format("{}{} must be {} and at most {}, got {}", prefix_, name,
                                                     bound, range.high, *number));
    return std::nullopt;
  }
  return number;
}

std::optional<std::string> Fields::string(std::string_view name) {
  const Json& value = raw(name);
  if (value.is_null()) return std::nullopt;
  if (!value.is_string()) {
    fault(name, fmt::format("{}{} must be a string, got {}", prefix_, name, type_name(value)));
    return std::nullopt;
  }
  return *value.as_string();
}

}  // namespace plimsoll::serve
