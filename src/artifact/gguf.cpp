// SPDX-License-Identifier: Apache-2.0
#include "artifact/gguf.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <optional>
#include <string>
#include <unordered_set>
#include <utility>

#include "artifact/byte_cursor.h"
#include "artifact/content.h"
#include "base/units.h"
#include "base/utf8.h"

namespace plimsoll::artifact {
namespace {

// Value types of the format page.
enum class ValueType : std::uint32_t {
  kU8 = 0,
  kI8 = 1,
  kU16 = 2,
  kI16 = 3,
  kU32 = 4,
  kI32 = 5,
  kF32 = 6,
  kBool = 7,
  kString = 8,
  kArray = 9,
  kU64 = 10,
  kI64 = 11,
  kF64 = 12,
};

constexpr std::int64_t kDefaultAlignment = 32;
constexpr std::uint32_t kMaxDimensions = 4;  // GGML_MAX_DIMS
constexpr std::uint64_t kMaxNameBytes = 65'535;
constexpr std::uint64_t kMaxArrayElements = 16 << 20;  // over all arrays; a 256k vocabulary takes about 1.2 M

// Bytes that one value takes at least; nothing for an unknown type.
std::optional<std::int64_t> least_bytes(ValueType type, bool is_v1) {
  switch (type) {
    case ValueType::kU8:
    case ValueType::kI8:
    case ValueType::kBool:
      return 1;
    case ValueType::kU16:
    case ValueType::kI16:
      return 2;
    case ValueType::kU32:
    case ValueType::kI32:
    case ValueType::kF32:
      return 4;
    case ValueType::kU64:
    case ValueType::kI64:
    case ValueType::kF64:
      return 8;
    case ValueType::kString:
      return is_v1 ? 4 : 8;
    case ValueType::kArray:
      return is_v1 ? 8 : 12;
  }
  return std::nullopt;
}

class Reader {
 public:
  Reader(std::span<const std::byte> file, std::string_view path, Findings& findings)
      : cursor_(file), path_(path), findings_(findings) {}

  GgufHeader read() {
    header_.metadata = Json::object();
    std::uint64_t num_tensors = 0, num_keys = 0;
    if (!read_start(num_tensors, num_keys)) return std::move(header_);
    if (!read_keys(num_keys) || !read_alignment() || !read_tensors(num_tensors)) return std::move(header_);
    header_.is_readable = true;
    place_tensors();
    return std::move(header_);
  }

 private:
  // Always false, so that a reader can `return add(...)`.
  bool add(std::string id, std::string_view place, std::string message,
           FindingLevel level = FindingLevel::kError, FindingKind kind = FindingKind::kMalformed) {
    findings_.push_back({std::move(id), level, kind, fmt::format("{}: {}", path_, place), std::move(message),
                         "download or convert the file again"});
    return false;
  }
  std::string at() const { return fmt::format("byte {}", cursor_.position()); }

  bool truncated(std::string_view what) {
    return add("GGUF_TRUNCATED", at(),
               fmt::format("the file ends inside {}: it has {} bytes", what, cursor_.size()));
  }

  bool read_start(std::uint64_t& num_tensors, std::uint64_t& num_keys) {
    const auto magic = cursor_.text(4);
    if (!magic) return add("GGUF_TRUNCATED", "byte 0", "the file has less than 4 bytes");
    if (*magic != "GGUF")
      return add(
          "GGUF_MAGIC", "byte 0",
          fmt::format("the file begins with {}, not with \"GGUF\"; files from before GGUF are not read",
                      dump(Json(*magic))));
    if (!cursor_.read(header_.version)) return truncated("the version");
    if (header_.version > 0xFFFF && header_.version == (header_.version & 0xFFFF0000U)) {
      cursor_.swap_bytes();
      header_.version = __builtin_bswap32(header_.version);
      header_.is_big_endian = true;
      add("GGUF_BIG_ENDIAN", "byte 4", "the file is big-endian; it can be inspected, not served here",
          FindingLevel::kError, FindingKind::kUnsupported);
    }
    if (header_.version < 1 || header_.version > 3)
      return add("GGUF_VERSION", "byte 4",
                 fmt::format("GGUF version {}; versions 1 to 3 are known", header_.version),
                 FindingLevel::kError, FindingKind::kUnsupported);
    is_v1_ = header_.version == 1;
    if (!read_size(num_tensors) || !read_size(num_keys)) return truncated("the counts");
    const std::int64_t least_tensor = is_v1_ ? 20 : 24;  // empty name, no dimension, type, offset
    const std::int64_t least_key = is_v1_ ? 9 : 13;      // empty key, type, one byte
    return fits(num_tensors, least_tensor, "tensors") && fits(num_keys, least_key, "keys");
  }

  bool fits(std::uint64_t count, std::int64_t least, std::string_view what) {
    const auto limit = static_cast<std::uint64_t>(cursor_.size() / least);
    if (count <= limit) return true;
    return add("GGUF_COUNT", "byte 8",
               fmt::format("the header counts {} {}; a file of {} bytes holds at most {}", count, what,
                           cursor_.size(), limit));
  }

  // Counts and lengths: 32 bits in version 1, 64 bits since.
  bool read_size(std::uint64_t& value) {
    if (!is_v1_) return cursor_.read(value);
    std::uint32_t narrow = 0;
    if (!cursor_.read(narrow)) return false;
    value = narrow;
    return true;
  }

  bool read_string(std::string& value, std::string_view what) {
    const std::string place = at();
    std::uint64_t length = 0;
    if (!read_size(length)) return truncated(what);
    if (length <= static_cast<std::uint64_t>(cursor_.size()) &&
        length > static_cast<std::uint64_t>(cursor_.left()))
      return truncated(what);  // the length can be right: the file was cut off
    if (length > static_cast<std::uint64_t>(cursor_.left()))
      return add(
          "GGUF_STRING_LEN", place,
          fmt::format("{} has a length of {} bytes; {} are left in the file", what, length, cursor_.left()));
    value = *cursor_.text(static_cast<std::int64_t>(length));
    return true;
  }

  bool read_keys(std::uint64_t count) {
    std::unordered_set<std::string> seen;
    for (std::uint64_t i = 0; i < count; ++i) {
      std::string key;
      if (!read_string(key, "a key")) return false;
      if (!is_valid_utf8(key)) return add("GGUF_KEY_UTF8", at(), "a key is not UTF-8");
      std::uint32_t type = 0;
      if (!cursor_.read(type)) return truncated("key \"" + key + "\"");
      Json value;
      if (!read_value(static_cast<ValueType>(type), key, value)) return false;
      if (!seen.insert(key).second)
        return add("GGUF_DUP_KEY", key, fmt::format("key \"{}\" is there twice", key));
      header_.metadata.mutable_members().emplace_back(std::move(key), std::move(value));
    }
    return true;
  }

  template <class T>
  bool read_number(const std::string& key, Json& value) {
    T number{};
    if (!cursor_.read(number)) return truncated("the value of \"" + key + "\"");
    value = Json(number);
    return true;
  }

  bool read_value(ValueType type, const std::string& key, Json& value) {
    switch (type) {
      case ValueType::kU8:
        return read_number<std::uint8_t>(key, value);
      case ValueType::kI8:
        return read_number<std::int8_t>(key, value);
      case ValueType::kU16:
        return read_number<std::uint16_t>(key, value);
      case ValueType::kI16:
        return read_number<std::int16_t>(key, value);
      case ValueType::kU32:
        return read_number<std::uint32_t>(key, value);
      case ValueType::kI32:
        return read_number<std::int32_t>(key, value);
      case ValueType::kU64:
        return read_number<std::uint64_t>(key, value);
      case ValueType::kI64:
        return read_number<std::int64_t>(key, value);
      case ValueType::kF32:
        return read_number<float>(key, value);
      case ValueType::kF64:
        return read_number<double>(key, value);
      case ValueType::kBool:
        return read_bool(key, value);
      case ValueType::kString: {
        std::string text;
        if (!read_string(text, "the value of \"" + key + "\"")) return false;
        value = Json(std::move(text));
        return true;
      }
      case ValueType::kArray:
        return read_array(key, value);
    }
    return add("GGUF_VALUE_TYPE", key,
               fmt::format("key \"{}\" has the unknown value type {}; nothing after it can be read", key,
                           static_cast<std::uint32_t>(type)));
  }

  bool read_bool(const std::string& key, Json& value) {
    std::uint8_t byte = 0;
    if (!cursor_.read(byte)) return truncated("the value of \"" + key + "\"");
    if (byte > 1 && !has_bool_finding_) {
      has_bool_finding_ = true;
      add("GGUF_BOOL", key,
          fmt::format("the truth value of \"{}\" is stored as {}, not 0 or 1; read as true", key, byte),
          FindingLevel::kWarning);
    }
    value = Json(byte != 0);
    return true;
  }

  bool read_array(const std::string& key, Json& value) {
    std::uint32_t type = 0;
    std::uint64_t count = 0;
    const std::string place = at();
    if (!cursor_.read(type) || !read_size(count)) return truncated("the array \"" + key + "\"");
    const auto element = static_cast<ValueType>(type);
    if (element == ValueType::kArray)
      return add("GGUF_NESTED_ARRAY", key,
                 fmt::format("key \"{}\" is an array of arrays, which no reader takes", key));
    const auto least = least_bytes(element, is_v1_);
    if (!least)
      return add("GGUF_VALUE_TYPE", key,
                 fmt::format("array \"{}\" has the unknown element type {}", key, type));
    if (count > static_cast<std::uint64_t>(cursor_.left() / *least))
      return add(
          "GGUF_ARRAY_LEN", place,
          fmt::format("array \"{}\" has {} elements of at least {} bytes; {} bytes are left in the file", key,
                      count, *least, cursor_.left()));
    num_array_elements_ += count;
    if (num_array_elements_ > kMaxArrayElements)
      return add("GGUF_ARRAY_LEN", place,
                 fmt::format("array \"{}\" has {} elements; all arrays together may have {}", key, count,
                             kMaxArrayElements));
    Json::Array items(static_cast<std::size_t>(count));
    for (Json& item : items)
      if (!read_value(element, key, item)) return false;
    value = Json(std::move(items));
    return true;
  }

  bool read_alignment() {
    alignment_ = kDefaultAlignment;
    if (!header_.metadata.contains("general.alignment")) return true;
    const auto alignment = header_.metadata["general.alignment"].as_integer();
    if (!alignment || *alignment <= 0 || !std::has_single_bit(static_cast<std::uint64_t>(*alignment)) ||
        *alignment > kGiB)
      return add("GGUF_ALIGNMENT", "general.alignment",
                 fmt::format("general.alignment is {}, not a power of two",
                             dump(header_.metadata["general.alignment"])));
    alignment_ = *alignment;
    return true;
  }

  bool read_tensors(std::uint64_t count) {
    std::unordered_set<std::string> seen;
    for (std::uint64_t i = 0; i < count; ++i) {
      Tensor tensor;
      bool is_whole = true;
      if (!read_tensor(tensor, is_whole)) return false;
      if (!is_whole) {
        continue;
      }
      if (!seen.insert(tensor.name).second) {
        add("GGUF_DUP_TENSOR", tensor.name, fmt::format("tensor \"{}\" is listed twice", tensor.name));
        continue;
      }
      header_.tensors.push_back(std::move(tensor));
    }
    return true;
  }

  // One entry of the list. False ends reading; a fault of this tensor alone clears `is_whole`.
  bool read_tensor(Tensor& tensor, bool& is_whole) {
    if (!read_string(tensor.name, "the tensor list")) return false;
    if (tensor.name.size() > kMaxNameBytes || !is_valid_utf8(tensor.name))
      return add("GGUF_NAME", at(), "a tensor's name is not UTF-8 or too long");
    std::uint32_t rank = 0, type = 0;
    if (!cursor_.read(rank)) return truncated("the tensor list");
    if (rank > kMaxDimensions)
      return add("GGUF_NDIMS", tensor.name,
                 fmt::format("{} dimensions; at most {} are allowed", rank, kMaxDimensions));
    std::optional<std::int64_t> elements = 1;
    for (std::uint32_t i = 0; i < rank; ++i) {
      std::uint64_t dimension = 0;
      if (!read_size(dimension)) return truncated("the tensor list");
      if (dimension > static_cast<std::uint64_t>(INT64_MAX)) elements.reset();
      tensor.shape.insert(tensor.shape.begin(), static_cast<std::int64_t>(dimension & INT64_MAX));
      if (elements) elements = checked_product(*elements, tensor.shape.front());
    }
    std::uint64_t offset = 0;
    if (!cursor_.read(type) || !cursor_.read(offset)) return truncated("the tensor list");
    is_whole = judge_tensor(tensor, elements, type, offset);
    return true;
  }

  bool judge_tensor(Tensor& tensor, std::optional<std::int64_t> elements, std::uint32_t type,
                    std::uint64_t offset) {
    const auto dtype = dtype_from_gguf(type);
    if (!dtype) return add("GGUF_TENSOR_TYPE", tensor.name, fmt::format("unknown tensor type {}", type));
    tensor.dtype = *dtype;
    if (!elements)
      return add("GGUF_SHAPE_OVERFLOW", tensor.name, "the product of the dimensions does not fit 63 bits");
    const std::int64_t block = info(*dtype).block_elements;
    const std::int64_t row = tensor.shape.empty() ? 1 : tensor.shape.back();
    if (row % block != 0)
      return add("GGUF_BLOCK", tensor.name,
                 fmt::format("rows of {} elements are not a multiple of the {}-element block of {}", row,
                             block, name(*dtype)));
    const auto bytes = stored_bytes(*dtype, *elements);
    if (!bytes || offset > static_cast<std::uint64_t>(INT64_MAX) ||
        !checked_sum(static_cast<std::int64_t>(offset), bytes->value))
      return add("GGUF_SHAPE_OVERFLOW", tensor.name, "offset and size do not fit 63 bits");
    tensor.bytes = bytes->value;
    tensor.offset_bytes = static_cast<std::int64_t>(offset);  // place_tensors adds the start of the data
    if (tensor.offset_bytes % alignment_ != 0)
      return add("GGUF_ALIGNMENT", tensor.name,
                 fmt::format("\"{}\" begins at offset {}, which is not a multiple of {}", tensor.name, offset,
                             alignment_));
    return true;
  }

  std::int64_t padded(std::int64_t bytes) const { return (bytes + alignment_ - 1) / alignment_ * alignment_; }

  // Turns offsets within the data section into offsets within the file, and holds them against it.
  void place_tensors() {
    const std::int64_t data_start = padded(cursor_.position());
    std::vector<const Tensor*> order;
    for (Tensor& tensor : header_.tensors) {
      if (tensor.offset_bytes > INT64_MAX - data_start - tensor.bytes) tensor.offset_bytes = INT64_MAX / 2;
      tensor.offset_bytes += data_start;
      order.push_back(&tensor);
    }
    std::stable_sort(order.begin(), order.end(),
                     [](const Tensor* a, const Tensor* b) { return a->offset_bytes < b->offset_bytes; });
    std::int64_t end = data_start;
    const Tensor* last = nullptr;
    for (const Tensor* tensor : order) {
      if (tensor->offset_bytes < end && last && tensor->bytes > 0)
        add("GGUF_OVERLAP", tensor->name,
            fmt::format("\"{}\" and \"{}\" overlap: offsets {} and {}", last->name, tensor->name,
                        last->offset_bytes - data_start, tensor->offset_bytes - data_start));
      if (tensor->offset_bytes + tensor->bytes > end) {
        end = tensor->offset_bytes + tensor->bytes;
        last = tensor;
      }
    }
    if (end > cursor_.size())
      add("GGUF_TRUNCATED", fmt::format("byte {}", cursor_.size()),
          fmt::format("the file ends {} bytes before the last tensor does: {} bytes found, {} expected",
                      end - cursor_.size(), cursor_.size(), end));
  }

  ByteCursor cursor_;
  std::string_view path_;
  Findings& findings_;
  GgufHeader header_;
  std::int64_t alignment_ = kDefaultAlignment;
  std::uint64_t num_array_elements_ = 0;
  bool is_v1_ = false;
  bool has_bool_finding_ = false;
};

}  // namespace

GgufHeader read_gguf(std::span<const std::byte> file, std::string_view path, Findings& findings) {
  if (auto foreign = foreign_content(file, path)) {
    findings.push_back(std::move(*foreign));
    return {};
  }
  return Reader(file, path, findings).read();
}

}  // namespace plimsoll::artifact
