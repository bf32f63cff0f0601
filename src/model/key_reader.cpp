// SPDX-License-Identifier: Apache-2.0
#include "model/key_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace plimsoll::model {
namespace {

constexpr std::string_view kTied = "tie_word_embeddings";

// A value as it can be shown in a sentence.
std::string shown(const Json& value) {
  std::string text = dump(value);
  if (text.size() > 60) text = text.substr(0, 60) + "...";
  return text;
}

}  // namespace

KeyReader KeyReader::of_config(const Json& object, std::string_view source, std::string pointer) {
  KeyReader keys(object, fmt::format("{}: {}/", source, pointer), "");
  keys.is_nested_ = !pointer.empty();
  return keys;
}

KeyReader KeyReader::of_gguf(const Json& metadata, std::string_view source, std::string_view architecture) {
  return {metadata, fmt::format("{}: ", source), fmt::format("{}.", architecture)};
}

const Json& KeyReader::operator[](std::string_view key) const {
  if (!key_prefix_.empty()) return (*object_)[key_prefix_ + std::string(key)];
  static const Json kFalse(false);
  if (is_untied_ && key == kTied) return kFalse;
  if (wrapper_ && key == kTied) return (*wrapper_)[key];
  const Json& value = (*object_)[key];
  if (!value.is_null()) return value;
  for (const std::string_view other : other_spellings(key))
    if (const Json& spelled = (*object_)[other]; !spelled.is_null()) return spelled;
  return value;
}

void KeyReader::inherit(const Json& wrapper) {
  if (wrapper[kTied].as_bool()) wrapper_ = &wrapper;
}

bool KeyReader::contains(std::string_view key) const {
  return object_->contains(key_prefix_ + std::string(key));
}

KeyReader KeyReader::child(std::string_view key) const {
  return {(*this)[key], fmt::format("{}{}{}/", place_, key_prefix_, key), ""};
}

KeyReader KeyReader::child(std::string_view key, std::size_t index) const {
  return {(*this)[key].items()[index], fmt::format("{}{}{}/{}/", place_, key_prefix_, key, index), ""};
}

void KeyReader::take_error(const KeyReader& child) {
  if (!error_) error_ = child.error_;
}

void KeyReader::add_error(ErrorCode code, std::string_view key, std::string message) {
  if (!error_)
    error_ = Error{code, std::move(message), fmt::format("{}{}{}", place_, key_prefix_, key),
                   "correct the value, or download the file again"};
}

Status KeyReader::status() const {
  if (error_) return fail(*error_);
  return {};
}

std::int64_t KeyReader::integer(std::string_view key, std::int64_t least, std::int64_t most,
                                std::optional<std::int64_t> otherwise) {
  const Json& value = (*this)[key];
  if (value.is_null()) {
    if (!otherwise)
      add_error(ErrorCode::kMalformed, key, fmt::format("reading the model's figures: {} is absent", key));
    return otherwise.value_or(least);
  }
  if (!value.is_number()) {
    add_error(ErrorCode::kMalformed, key,
              fmt::format("reading the model's figures: {} is {}, an integer is wanted", key, shown(value)));
    return least;
  }
  const auto number = value.as_integer();
  if (!number || *number < least || *number > most) {
    add_error(ErrorCode::kMalformed, key,
              fmt::format("reading the model's figures: {} is {}, outside {} to {}", key, shown(value), least,
                          most));
    return least;
  }
  return *number;
}

int KeyReader::count(std::string_view key, std::int64_t most, std::optional<std::int64_t> otherwise) {
  most = std::min<std::int64_t>(most, INT32_MAX);
  return static_cast<int>(integer(key, 1, most, otherwise));
}

double KeyReader::positive(std::string_view key, double otherwise) {
  const Json& value = (*this)[key];
  if (value.is_null()) return otherwise;
  const auto number = value.as_double();
  if (number && std::isfinite(*number) && *number > 0) return *number;
  add_error(
      ErrorCode::kMalformed, key,
      fmt::format("reading the model's figures: {} is {}, a number above 0 is wanted", key, shown(value)));
  return otherwise;
}

bool KeyReader::flag(std::string_view key, bool otherwise) {
  const Json& value = (*this)[key];
  if (value.is_null()) return otherwise;
  if (const auto flag = value.as_bool()) return *flag;
  add_error(ErrorCode::kMalformed, key,
            fmt::format("reading the model's figures: {} is {}, true or false is wanted", key, shown(value)));
  return otherwise;
}

bool KeyReader::truth(std::string_view key, bool otherwise) {
  return flag(key, contains(key) ? false : otherwise);
}

std::string KeyReader::text(std::string_view key, std::string_view otherwise) {
  const Json& value = (*this)[key];
  if (value.is_null()) return std::string(otherwise);
  if (const auto* text = value.as_string()) return *text;
  add_error(ErrorCode::kMalformed, key,
            fmt::format("reading the model's figures: {} is {}, a string is wanted", key, shown(value)));
  return std::string(otherwise);
}

std::vector<std::int64_t> KeyReader::per_layer(std::string_view key, std::size_t layers, std::int64_t least,
                                               std::int64_t most, std::optional<std::int64_t> otherwise) {
  const Json& value = (*this)[key];
  if (!value.is_array()) return std::vector<std::int64_t>(layers, integer(key, least, most, otherwise));
  std::vector<std::int64_t> result;
  if (value.size() != layers) {
    add_error(ErrorCode::kMalformed, key,
              fmt::format("reading the model's figures: {} has {} entries for {} layers", key, value.size(),
                          layers));
    return std::vector<std::int64_t>(layers, least);
  }
  for (const Json& item : value.items()) {
    const auto number = item.as_integer();
    if (!number || *number < least || *number > most) {
      add_error(ErrorCode::kMalformed, key,
                fmt::format("reading the model's figures: {} holds {}, outside {} to {}", key, shown(item),
                            least, most));
      return std::vector<std::int64_t>(layers, least);
    }
    result.push_back(*number);
  }
  return result;
}

std::vector<bool> KeyReader::named_layers(std::string_view key, std::size_t layers, int first_layer) {
  std::vector<bool> result(layers, false);
  const Json& value = (*this)[key];
  if (value.is_null()) return result;
  if (!value.is_array())
    add_error(ErrorCode::kMalformed, key,
              fmt::format("reading the model's figures: {} is not a list of layers", key));
  for (const Json& item : value.items())
    if (const auto number = item.as_integer();
        number && *number >= first_layer && *number - first_layer < static_cast<std::int64_t>(layers))
      result[static_cast<std::size_t>(*number - first_layer)] = true;
  return result;
}

std::vector<double> KeyReader::numbers(std::string_view key, std::size_t most) {
  std::vector<double> result;
  const Json& value = (*this)[key];
  if (value.is_null()) return result;
  if (!value.is_array() || value.size() > most) {
    add_error(ErrorCode::kMalformed, key,
              fmt::format("reading the model's figures: {} is not a list of at most {} numbers", key, most));
    return result;
  }
  for (const Json& item : value.items()) {
    const auto number = item.as_double();
    if (!number || !std::isfinite(*number)) {
      add_error(ErrorCode::kMalformed, key,
                fmt::format("reading the model's figures: {} holds {}, not a number", key, shown(item)));
      return {};
    }
    result.push_back(*number);
  }
  return result;
}

}  // namespace plimsoll::model
