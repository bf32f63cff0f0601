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
#include "artifact/gguf_values.h"
#include "artifact/name_table.h"
#include "base/units.h"
#include "base/utf8.h"

namespace plimsoll::artifact {
namespace {

constexpr std::int64_t kDefaultAlignment = 32;
constexpr std::int64_t kLeastAlignment = 8;  // the format wants a multiple of it
constexpr std::uint32_t kMaxDimensions = 4;  // GGML_MAX_DIMS
constexpr std::size_t kMaxNameBytes = 65'535;
constexpr std::size_t kMaxLoadedName = 63;  // GGML_MAX_NAME with its closing zero
// Published files have up to 2,000 tensors and 100 keys; bounds memory.
constexpr std::uint64_t kMaxTensors = 98'304;
constexpr std::uint64_t kMaxKeys = 65'536;

class Reader {
 public:
  Reader(const HeaderSource& source, Findings& findings)
      : cursor_(source.bytes),
        file_bytes_(source.file_bytes.value_or(static_cast<std::int64_t>(source.bytes.size()))),
        findings_(std::string(source.path), findings),
        values_(cursor_, findings_, source.mapping) {}

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
  bool add(std::string_view id, std::string_view place, std::string message) {
    return findings_.add(id, place, std::move(message));
  }

  bool read_start(std::uint64_t& num_tensors, std::uint64_t& num_keys) {
    const auto magic = cursor_.text(4);
    if (!magic) return add("GGUF_TRUNCATED", "byte 0", "the file has less than 4 bytes");
    if (*magic != "GGUF")
      return add(
          "GGUF_MAGIC", "byte 0",
          fmt::format("the file begins with {}, not with \"GGUF\"; files from before GGUF are not read",
                      dump(Json(*magic))));
    if (!cursor_.read(header_.version)) return values_.truncated("the version");
    if (header_.version > 0xFFFF && header_.version == (header_.version & 0xFFFF0000U)) {
      cursor_.swap_bytes();
      header_.version = __builtin_bswap32(header_.version);
      header_.is_big_endian = true;
      findings_.add("GGUF_BIG_ENDIAN", "byte 4",
                    "the file is big-endian; it can be inspected, not served here", FindingLevel::kError,
                    "convert the model again for little-endian machines", FindingKind::kUnsupported);
    }
    if (header_.version < 1 || header_.version > 3)
      return findings_.add("GGUF_VERSION", "byte 4",
                           fmt::format("GGUF version {}; versions 1 to 3 are known", header_.version),
                           FindingLevel::kError, "convert the model again with a current converter",
                           FindingKind::kUnsupported);
    const bool is_v1 = header_.version == 1;
    if (is_v1) values_.use_version_1();
    if (!values_.read_size(num_tensors) || !values_.read_size(num_keys))
      return values_.truncated("the counts");
    const std::int64_t least_tensor = is_v1 ? 20 : 24;  // empty name, no dimension, type, offset
    const std::int64_t least_key = is_v1 ? 9 : 13;      // empty key, type, one byte
    return fits(num_tensors, least_tensor, kMaxTensors, "tensors") &&
           fits(num_keys, least_key, kMaxKeys, "keys");
  }

  bool fits(std::uint64_t count, std::int64_t least, std::uint64_t most, std::string_view what) {
    const auto limit = static_cast<std::uint64_t>(file_bytes_ / least);
    if (count > limit)
      return add("GGUF_COUNT", "byte 8",
                 fmt::format("the header counts {} {}; a file of {} bytes holds at most {}", count, what,
                             file_bytes_, limit));
    return count <= most ||
           add("GGUF_COUNT", "byte 8",
               fmt::format("the header counts {} {}; no model has more than {}", count, what, most));
  }

  bool read_keys(std::uint64_t count) {
    std::unordered_set<std::string_view> seen;
    for (std::uint64_t i = 0; i < count; ++i) {
      const auto text = values_.read_text("a key");
      if (!text) return false;
      if (!is_valid_utf8(*text) || text->size() > kMaxNameBytes)
        return add("GGUF_KEY_UTF8", values_.at(), "a key is not UTF-8 or too long");
      std::string key(*text);
      std::uint32_t type = 0;
      if (!cursor_.read(type)) return values_.truncated("key \"" + key + "\"");
      Json value;
      if (!values_.read_value(static_cast<GgufValueType>(type), key, value)) return false;
      if (!seen.insert(*text).second)
        return add("GGUF_DUP_KEY", key, fmt::format("key \"{}\" is there twice", key));
      values_.release_pages();
      if (!values_.keeps_text(*text))
        values_.tell_passed_over(key, "a name as long as this");
      else
        header_.metadata.mutable_members().emplace_back(std::move(key), std::move(value));
    }
    return true;
  }

  bool read_alignment() {
    if (!header_.metadata.contains("general.alignment")) return true;
    const auto alignment = header_.metadata["general.alignment"].as_integer();
    if (!alignment || *alignment < kLeastAlignment ||
        !std::has_single_bit(static_cast<std::uint64_t>(*alignment)) || *alignment > kGiB)
      return add("GGUF_ALIGNMENT", "general.alignment",
                 fmt::format("general.alignment is {}, not a power of two from 8 up",
                             dump(header_.metadata["general.alignment"]).substr(0, 100)));
    alignment_ = *alignment;
    return true;
  }

  bool read_tensors(std::uint64_t count) {
    const auto room = static_cast<std::size_t>(count);  // fits() holds it against the file
    header_.tensors.reserve(room);
    header_.hashes.reserve(room);
    NameTable table;
    table.reset(room);
    for (std::uint64_t i = 0; i < count; ++i) {
      Tensor tensor;
      bool is_whole = true;
      if (!read_tensor(tensor, is_whole)) return false;
      if (!is_whole) continue;
      const std::uint64_t hash = hash_of(tensor.name);
      if (table.insert(hash, static_cast<std::uint32_t>(header_.tensors.size()),
                       [&](std::uint32_t other) { return header_.tensors[other].name == tensor.name; })) {
        has_left_out_ = true;
        add("GGUF_DUP_TENSOR", tensor.name, fmt::format("tensor \"{}\" is listed twice", tensor.name));
        continue;
      }
      header_.tensors.push_back(std::move(tensor));
      header_.hashes.push_back(hash);
    }
    return true;
  }

  // One entry of the list. False ends reading; a fault of this tensor alone clears `is_whole`.
  bool read_tensor(Tensor& tensor, bool& is_whole) {
    const auto name = values_.read_text("the tensor list");
    if (!name) return false;
    if (name->size() > kMaxNameBytes || !is_valid_utf8(*name))
      return add("GGUF_NAME", values_.at(), "a tensor's name is not UTF-8 or too long");
    tensor.name = *name;
    if (name->size() > kMaxLoadedName)
      add("GGUF_NAME", *name,
          fmt::format("the tensor's name has {} bytes; llama.cpp takes up to {}", name->size(),
                      kMaxLoadedName));
    std::uint32_t rank = 0, type = 0;
    if (!cursor_.read(rank)) return values_.truncated("the tensor list");
    if (rank > kMaxDimensions)
      return add("GGUF_NDIMS", tensor.name,
                 fmt::format("tensor \"{}\" has {} dimensions; at most {} are allowed", tensor.name, rank,
                             kMaxDimensions));
    std::optional<std::int64_t> elements = 1;
    for (std::uint32_t i = 0; i < rank; ++i) {
      std::uint64_t dimension = 0;
      if (!values_.read_size(dimension)) return values_.truncated("the tensor list");
      has_zero_ |= dimension == 0;
      if (dimension > static_cast<std::uint64_t>(INT64_MAX)) elements.reset();
      tensor.shape.push_back(static_cast<std::int64_t>(dimension & INT64_MAX));
      if (elements) elements = checked_product(*elements, tensor.shape.back());
    }
    tensor.shape.reverse();
    std::uint64_t offset = 0;
    if (!cursor_.read(type) || !cursor_.read(offset)) return values_.truncated("the tensor list");
    is_whole = judge_tensor(tensor, elements, type, offset);
    if (is_whole) follow(tensor);
    has_left_out_ |= !is_whole;
    has_zero_ = false;
    return true;
  }

  bool judge_tensor(Tensor& tensor, std::optional<std::int64_t> elements, std::uint32_t type,
                    std::uint64_t offset) {
    const auto dtype = dtype_from_gguf(type);
    if (!dtype)
      return add("GGUF_TENSOR_TYPE", tensor.name,
                 fmt::format("tensor \"{}\" has the unknown type {}", tensor.name, type));
    tensor.dtype = *dtype;
    if (has_zero_)
      return add("GGUF_SHAPE", tensor.name,
                 fmt::format("tensor \"{}\" has a dimension of 0; each must be at least 1", tensor.name));
    if (!elements)
      return add("GGUF_SHAPE_OVERFLOW", tensor.name,
                 fmt::format("the product of the dimensions of \"{}\" does not fit 63 bits", tensor.name));
    const std::int64_t block = info(*dtype).block_elements;
    const std::int64_t row = tensor.shape.empty() ? 1 : tensor.shape.back();
    if (row % block != 0)
      return add("GGUF_BLOCK", tensor.name,
                 fmt::format("rows of {} elements are not a multiple of the {}-element block of {}", row,
                             block, name(*dtype)));
    const auto bytes = stored_bytes(*dtype, *elements);
    if (!bytes || offset > static_cast<std::uint64_t>(INT64_MAX) ||
        !checked_sum(static_cast<std::int64_t>(offset), bytes->value))
      return add("GGUF_SHAPE_OVERFLOW", tensor.name,
                 fmt::format("offset and size of \"{}\" do not fit 63 bits", tensor.name));
    tensor.bytes = bytes->value;
    tensor.offset_bytes = static_cast<std::int64_t>(offset);  // place_tensors adds the start of the data
    if (tensor.offset_bytes % alignment_ != 0)
      return add("GGUF_ALIGNMENT", tensor.name,
                 fmt::format("\"{}\" begins at offset {}, which is not a multiple of {}", tensor.name, offset,
                             alignment_));
    return true;
  }

  // llama.cpp wants every tensor where the one listed before it ends; the first that is elsewhere is told.
  void follow(const Tensor& tensor) {
    if (gap_.empty() && tensor.offset_bytes != next_offset_) {
      gap_at_ = tensor.name;
      gap_ = fmt::format(
          "\"{}\" begins at offset {}, and the tensors listed before it end at {}: llama.cpp "
          "refuses files whose tensors do not follow one another in the list's order",
          tensor.name, tensor.offset_bytes, next_offset_);
    }
    if (tensor.bytes > INT64_MAX / 4 - next_offset_) has_left_out_ = true;
    if (!has_left_out_) next_offset_ += padded(tensor.bytes);
  }

  std::int64_t padded(std::int64_t bytes) const { return (bytes + alignment_ - 1) / alignment_ * alignment_; }

  // Turns offsets within the data section into offsets within the file, and holds them against it.
  void place_tensors() {
    const std::int64_t data_start = padded(cursor_.position());
    std::vector<const Tensor*> order;
    order.reserve(header_.tensors.size());
    for (Tensor& tensor : header_.tensors) {
      // Clamped: far behind any file's end, so that it is told as such below.
      if (tensor.offset_bytes > INT64_MAX - data_start - tensor.bytes) {
        tensor.bytes = std::min(tensor.bytes, INT64_MAX / 4);
        tensor.offset_bytes = INT64_MAX / 2;
      }
      tensor.offset_bytes += data_start;
      order.push_back(&tensor);
    }
    std::stable_sort(order.begin(), order.end(),
                     [](const Tensor* a, const Tensor* b) { return a->offset_bytes < b->offset_bytes; });
    std::int64_t end = data_start;
    const Tensor* last = nullptr;
    bool has_overlap = false;
    for (const Tensor* tensor : order) {
      if (tensor->offset_bytes < end && last && tensor->bytes > 0) {
        has_overlap = true;
        add("GGUF_OVERLAP", tensor->name,
            fmt::format("\"{}\" and \"{}\" overlap: offsets {} and {}", last->name, tensor->name,
                        last->offset_bytes - data_start, tensor->offset_bytes - data_start));
      }
      if (tensor->offset_bytes + tensor->bytes > end) {
        end = tensor->offset_bytes + tensor->bytes;
        last = tensor;
      }
    }
    if (end > file_bytes_ && last)
      add("GGUF_TRUNCATED", fmt::format("byte {}", file_bytes_),
          fmt::format("the file ends {} bytes before the last tensor does: {} bytes found, {} expected",
                      end - file_bytes_, file_bytes_, end));
    const bool is_sound = end <= file_bytes_ && !has_overlap && !has_left_out_;
    if (!gap_.empty() && is_sound) add("GGUF_OFFSET", gap_at_, gap_);
  }

  ByteCursor cursor_;
  std::int64_t file_bytes_;
  FindingList findings_;
  GgufValues values_;
  GgufHeader header_;
  std::int64_t alignment_ = kDefaultAlignment;
  std::int64_t next_offset_ = 0;  // where the next tensor of the list should begin
  std::string gap_, gap_at_;      // of the first that does not
  bool has_left_out_ = false;     // entries that are no tensors: what follows them is anywhere
  bool has_zero_ = false;         // among the dimensions of the tensor being read
};

}  // namespace

GgufHeader read_gguf(const HeaderSource& source, Findings& findings) {
  if (auto foreign = foreign_content(source.bytes, source.path)) {
    findings.push_back(std::move(*foreign));
    return {};
  }
  return Reader(source, findings).read();
}

}  // namespace plimsoll::artifact
