// SPDX-License-Identifier: Apache-2.0
#include "artifact/gguf_values.h"

#include <fmt/format.h>

#include <utility>

#include "base/units.h"

namespace plimsoll::artifact {
namespace {

// A vocabulary of 262,144 tokens takes 1.3 M elements: tokens, scores, types and merges.
constexpr std::int64_t kMaxElements = 1'400'000;        // kept over all arrays of the tokenizer
constexpr std::int64_t kMaxElementsOfOther = 65'536;    // kept of one array that is not the tokenizer's
constexpr std::int64_t kMaxElementsOfOthers = 400'000;  // kept over all arrays that are not the tokenizer's
constexpr std::int64_t kMaxText = 16 * kMiB;     // of one string; some files carry a whole tokenizer.json
constexpr std::int64_t kMaxAllText = 32 * kMiB;  // of all keys and strings
constexpr std::int64_t kReleaseStep = 8 * kMiB;

// Bytes that one value takes at least; nothing for an unknown type.
std::optional<std::int64_t> least_bytes(GgufValueType type, bool is_v1) {
  switch (type) {
    case GgufValueType::kU8:
    case GgufValueType::kI8:
    case GgufValueType::kBool:
      return 1;
    case GgufValueType::kU16:
    case GgufValueType::kI16:
      return 2;
    case GgufValueType::kU32:
    case GgufValueType::kI32:
    case GgufValueType::kF32:
      return 4;
    case GgufValueType::kU64:
    case GgufValueType::kI64:
    case GgufValueType::kF64:
      return 8;
    case GgufValueType::kString:
      return is_v1 ? 4 : 8;
    case GgufValueType::kArray:
      return is_v1 ? 8 : 12;
  }
  return std::nullopt;
}

std::string place_of(std::int64_t position) {
  return fmt::format("byte {}", position);
}

}  // namespace

std::string GgufValues::at() const {
  return place_of(cursor_.position());
}

bool GgufValues::truncated(std::string_view what) {
  return findings_.add("GGUF_TRUNCATED", at(),
                       fmt::format("the file ends inside {}: it has {} bytes", what, cursor_.size()));
}

bool GgufValues::read_size(std::uint64_t& value) {
  if (!is_v1_) return cursor_.read(value);
  std::uint32_t narrow = 0;
  if (!cursor_.read(narrow)) return false;
  value = narrow;
  return true;
}

std::optional<std::string_view> GgufValues::read_text(std::string_view what) {
  const std::int64_t start = cursor_.position();
  std::uint64_t length = 0;
  if (!read_size(length)) {
    truncated(what);
    return std::nullopt;
  }
  if (length > static_cast<std::uint64_t>(cursor_.left())) {
    // A length that the whole file could hold can be right: then the file was cut off.
    if (length <= static_cast<std::uint64_t>(cursor_.size()))
      truncated(what);
    else
      findings_.add(
          "GGUF_STRING_LEN", place_of(start),
          fmt::format("{} has a length of {} bytes; {} are left in the file", what, length, cursor_.left()));
    return std::nullopt;
  }
  return cursor_.text(static_cast<std::int64_t>(length));
}

template <class T>
bool GgufValues::read_number(const std::string& key, Json& value) {
  T number{};
  if (!cursor_.read(number)) return truncated("the value of \"" + key + "\"");
  value = Json(number);
  return true;
}

bool GgufValues::read_value(GgufValueType type, const std::string& key, Json& value) {
  switch (type) {
    case GgufValueType::kU8:
      return read_number<std::uint8_t>(key, value);
    case GgufValueType::kI8:
      return read_number<std::int8_t>(key, value);
    case GgufValueType::kU16:
      return read_number<std::uint16_t>(key, value);
    case GgufValueType::kI16:
      return read_number<std::int16_t>(key, value);
    case GgufValueType::kU32:
      return read_number<std::uint32_t>(key, value);
    case GgufValueType::kI32:
      return read_number<std::int32_t>(key, value);
    case GgufValueType::kU64:
      return read_number<std::uint64_t>(key, value);
    case GgufValueType::kI64:
      return read_number<std::int64_t>(key, value);
    case GgufValueType::kF32:
      return read_number<float>(key, value);
    case GgufValueType::kF64:
      return read_number<double>(key, value);
    case GgufValueType::kBool:
      return read_bool(key, value);
    case GgufValueType::kString:
      return read_string(key, value);
    case GgufValueType::kArray:
      return read_array(key, value);
  }
  return findings_.add("GGUF_VALUE_TYPE", key,
                       fmt::format("key \"{}\" has the unknown value type {}; nothing after it can be read",
                                   key, static_cast<std::uint32_t>(type)));
}

bool GgufValues::read_bool(const std::string& key, Json& value) {
  std::uint8_t byte = 0;
  if (!cursor_.read(byte)) return truncated("the value of \"" + key + "\"");
  if (byte > 1 && !std::exchange(has_bool_finding_, true))
    findings_.add(
        "GGUF_BOOL", key,
        fmt::format("the truth value of \"{}\" is stored as {}, not 0 or 1; read as true", key, byte),
        FindingLevel::kWarning);
  value = Json(byte != 0);
  return true;
}

bool GgufValues::read_string(const std::string& key, Json& value) {
  const auto text = read_text("the value of \"" + key + "\"");
  if (!text) return false;
  if (static_cast<std::int64_t>(text->size()) > kMaxText || !keeps_text(*text))
    tell_passed_over(key, fmt::format("a text of {} bytes", text->size()));
  else
    value = Json(*text);
  return true;
}

bool GgufValues::keeps_text(std::string_view text) {
  const auto bytes = static_cast<std::int64_t>(text.size());
  if (bytes > kMaxAllText - text_bytes_) return false;
  text_bytes_ += bytes;
  return true;
}

void GgufValues::tell_passed_over(const std::string& key, std::string_view what) {
  findings_.add("GGUF_VALUE_LONG", key,
                fmt::format("key \"{}\" holds {}, more than is kept; it is passed over", key, what),
                FindingLevel::kInfo, "nothing need be done where the key is not needed",
                FindingKind::kCheckFailed);
}

bool GgufValues::read_array(const std::string& key, Json& value) {
  std::uint32_t type = 0;
  std::uint64_t count = 0;
  const std::string place = at();
  if (!cursor_.read(type) || !read_size(count)) return truncated("the array \"" + key + "\"");
  const auto element = static_cast<GgufValueType>(type);
  if (element == GgufValueType::kArray)
    return findings_.add("GGUF_NESTED_ARRAY", key,
                         fmt::format("key \"{}\" is an array of arrays, which no reader takes", key));
  const auto least = least_bytes(element, is_v1_);
  if (!least)
    return findings_.add("GGUF_VALUE_TYPE", key,
                         fmt::format("array \"{}\" has the unknown element type {}", key, type));
  if (count > static_cast<std::uint64_t>(cursor_.left() / *least))
    return findings_.add(
        "GGUF_ARRAY_LEN", place,
        fmt::format("array \"{}\" has {} elements of at least {} bytes; {} bytes are left in the file", key,
                    count, *least, cursor_.left()));
  const auto length = static_cast<std::int64_t>(count);
  const bool is_vocabulary = key.starts_with("tokenizer.");
  if (is_vocabulary
          ? num_elements_ + length > kMaxElements
          : length > kMaxElementsOfOther || num_elements_of_others_ + length > kMaxElementsOfOthers) {
    tell_passed_over(key, fmt::format("{} elements", length));
    return pass_over(element, length, *least, key);
  }
  (is_vocabulary ? num_elements_ : num_elements_of_others_) += length;
  Json::Array items(static_cast<std::size_t>(count));
  const std::string what = "the value of \"" + key + "\"";
  for (std::int64_t i = 0; i < length; ++i) {
    Json& item = items[static_cast<std::size_t>(i)];
    if (element == GgufValueType::kString) {
      const auto text = read_text(what);
      if (!text) return false;
      if (!keeps_text(*text)) {
        tell_passed_over(key, fmt::format("{} texts that are long", length));
        return pass_over(element, length - i - 1, *least, key);
      }
      item = Json(*text);
      release_pages();
    } else if (!read_value(element, key, item)) {
      return false;
    }
  }
  value = Json(std::move(items));
  return true;
}

bool GgufValues::pass_over(GgufValueType element, std::int64_t count, std::int64_t least,
                           const std::string& key) {
  if (element != GgufValueType::kString)
    return cursor_.text(count * least).has_value();  // held against left()
  const std::string what = "the value of \"" + key + "\"";
  for (std::int64_t i = 0; i < count; ++i) {
    if (!read_text(what)) return false;
    release_pages();
  }
  return true;
}

void GgufValues::release_pages() {
  if (!mapping_ || cursor_.position() - released_ < kReleaseStep) return;
  mapping_->release(mapping_->bytes().subspan(static_cast<std::size_t>(released_),
                                              static_cast<std::size_t>(cursor_.position() - released_)));
  released_ = cursor_.position();
}

}  // namespace plimsoll::artifact
