// SPDX-License-Identifier: Apache-2.0
#include "artifact/safetensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <unordered_set>

#include "artifact/content.h"
#include "base/json.h"
#include "base/units.h"
#include "base/utf8.h"

namespace plimsoll::artifact {
namespace {

constexpr std::int64_t kLengthField = 8;               // little-endian u64 before the header
constexpr std::int64_t kMaxHeaderBytes = 100'000'000;  // the reference reader's own limit
constexpr std::size_t kMaxRank = 64;                   // far above any model; bounds a hostile shape

class Reader {
 public:
  Reader(std::span<const std::byte> file, std::string_view path, Findings& findings)
      : file_(file), path_(path), findings_(findings) {}

  SafetensorsHeader read() {
    SafetensorsHeader header;
    const auto length = header_length();
    if (!length) return header;
    const std::string_view text = as_text(file_.subspan(kLengthField, static_cast<std::size_t>(*length)));
    data_start_ = kLengthField + *length;
    if (!is_valid_utf8(text)) {
      add("ST_HEADER_UTF8", "byte 8", "the header is not UTF-8");
      return header;
    }
    if (text.empty() || text[0] != '{') {
      add("ST_HEADER_JSON", "byte 8", "the header is not a JSON object: it does not begin with '{'");
      return header;
    }
    const auto json = parse_json(text, path_, {.max_depth = 8, .allow_bare_constants = false});
    if (!json || !json->is_object()) {
      add("ST_HEADER_JSON", "byte 8",
          "the header is not a JSON object: " + (json ? std::string("another value") : json.error().message));
      return header;
    }
    header.is_readable = true;
    if (data_start_ % 8 != 0)
      add("ST_ALIGNMENT", "byte 0",
          fmt::format(
              "tensor data starts at byte {}, which is not a multiple of 8: mapped values are misaligned",
              data_start_),
          FindingLevel::kWarning, "save the file again with a current safetensors");
    read_members(*json, header);
    check_ranges(header.tensors);
    return header;
  }

 private:
  void add(std::string id, std::string_view place, std::string message,
           FindingLevel level = FindingLevel::kError,
           std::string fix = "download or convert the file again") {
    findings_.push_back({std::move(id), level, FindingKind::kMalformed, fmt::format("{}: {}", path_, place),
                         std::move(message), std::move(fix)});
  }

  std::optional<std::int64_t> header_length() {
    const auto size = static_cast<std::int64_t>(file_.size());
    if (size < kLengthField) {
      add("ST_TOO_SMALL", "byte 0",
          fmt::format("the file has {} bytes, less than the 8-byte header length", size));
      return std::nullopt;
    }
    std::uint64_t length = 0;
    for (int i = 7; i >= 0; --i)
      length = length << 8 | std::to_integer<std::uint64_t>(file_[static_cast<std::size_t>(i)]);
    if (length > static_cast<std::uint64_t>(kMaxHeaderBytes)) {
      add("ST_HEADER_LEN", "byte 0",
          fmt::format("the header length is {}, more than the {} that readers take", length,
                      kMaxHeaderBytes));
      return std::nullopt;
    }
    if (static_cast<std::int64_t>(length) > size - kLengthField) {
      add("ST_HEADER_LEN", "byte 0",
          fmt::format("the header length is {}, but only {} bytes follow it", length, size - kLengthField));
      return std::nullopt;
    }
    return static_cast<std::int64_t>(length);
  }

  void read_members(const Json& json, SafetensorsHeader& header) {
    std::unordered_set<std::string_view> seen;
    header.tensors.reserve(json.size());
    for (const auto& [name, value] : json.members()) {
      if (!seen.insert(name).second) {
        add("ST_DUP_KEY", name, fmt::format("the header names \"{}\" twice", name));
        has_left_out_ = true;
        continue;
      }
      if (name == "__metadata__") {
        read_metadata(value, header);
        continue;
      }
      if (auto tensor = read_tensor(name, value))
        header.tensors.push_back(std::move(*tensor));
      else
        has_left_out_ = true;
    }
    std::stable_sort(header.tensors.begin(), header.tensors.end(), [](const Tensor& a, const Tensor& b) {
      return std::pair(a.offset_bytes, a.bytes) < std::pair(b.offset_bytes, b.bytes);
    });
  }

  void read_metadata(const Json& value, SafetensorsHeader& header) {
    if (!value.is_object()) {
      add("ST_METADATA", "__metadata__", "__metadata__ is not an object of strings");
      return;
    }
    for (const auto& [key, text] : value.members()) {
      if (const auto* string = text.as_string())
        header.metadata.emplace_back(key, *string);
      else
        add("ST_METADATA", "__metadata__",
            fmt::format("__metadata__ maps \"{}\" to something that is not a string", key));
    }
  }

  std::optional<Tensor> read_tensor(const std::string& name, const Json& value) {
    const std::string* spelling = value["dtype"].as_string();
    const auto dtype = spelling ? dtype_from_safetensors(*spelling) : std::nullopt;
    if (!dtype) {
      add("ST_DTYPE", name, fmt::format("unknown dtype {}", dump(value["dtype"])));
      return std::nullopt;
    }
    Tensor tensor;
    tensor.name = name;
    tensor.dtype = *dtype;
    const auto bytes = read_shape(name, value["shape"], tensor);
    const auto range = read_offsets(name, value["data_offsets"]);
    if (!bytes || !range) return std::nullopt;
    tensor.offset_bytes = data_start_ + range->first;
    tensor.bytes = range->second - range->first;
    if (tensor.bytes != bytes->value) {
      add("ST_SIZE_MISMATCH", name,
          fmt::format("shape x dtype = {} bytes, its range in the file = {} bytes", bytes->value,
                      tensor.bytes));
      has_left_out_ = true;
      tensor.bytes = std::min(tensor.bytes, bytes->value);  // counted as stored, never more than is there
    }
    return tensor;
  }

  std::optional<Bytes> read_shape(const std::string& name, const Json& shape, Tensor& tensor) {
    if (!shape.is_array() || shape.size() > kMaxRank) {
      add("ST_SHAPE", name, "the shape is not a list of dimensions");
      return std::nullopt;
    }
    std::optional<std::int64_t> elements = 1;
    for (const Json& item : shape.items()) {
      if (!item.is_integer() && !item.is_double()) {
        add("ST_SHAPE", name, fmt::format("the shape holds {}, not a number", dump(item)));
        return std::nullopt;
      }
      const auto dimension = item.as_integer();
      if (!dimension || *dimension < 0) {
        add("ST_SHAPE", name,
            fmt::format("the shape holds {}: not a whole number from 0 to 2^63-1", dump(item)));
        return std::nullopt;
      }
      tensor.shape.push_back(*dimension);
      if (elements) elements = checked_product(*elements, *dimension);
    }
    if (std::find(tensor.shape.begin(), tensor.shape.end(), 0) != tensor.shape.end()) elements = 0;
    const auto bytes = elements ? stored_bytes(tensor.dtype, *elements) : std::nullopt;
    if (!bytes)
      add("ST_SHAPE_OVERFLOW", name,
          "the product of the dimensions does not fit 63 bits of bytes: " + dump(shape));
    return bytes;
  }

  // Offsets from the start of the data section: [begin, end).
  std::optional<std::pair<std::int64_t, std::int64_t>> read_offsets(const std::string& name,
                                                                    const Json& offsets) {
    std::optional<std::int64_t> begin, end;
    if (offsets.size() == 2 && offsets.is_array()) {
      begin = offsets.items()[0].as_integer();
      end = offsets.items()[1].as_integer();
    }
    if (!begin || !end || *begin < 0 || *end < *begin) {
      add("ST_OFFSETS", name,
          fmt::format("data_offsets {} are not [begin, end] with 0 <= begin <= end", dump(offsets)));
      return std::nullopt;
    }
    if (!checked_sum(*end, data_start_)) {
      add("ST_OFFSETS", name, fmt::format("data_offsets {} do not fit 63 bits", dump(offsets)));
      return std::nullopt;
    }
    return std::pair(*begin, *end);
  }

  // The format wants the tensors to cover the data section once, without holes.
  void check_ranges(const std::vector<Tensor>& tensors) {
    std::int64_t covered = data_start_;
    const Tensor* last = nullptr;
    for (const Tensor& tensor : tensors) {
      if (tensor.bytes == 0) continue;
      if (tensor.offset_bytes < covered && last)
        add("ST_OVERLAP", tensor.name,
            fmt::format("\"{}\" begins at byte {}, inside \"{}\", which ends at byte {}", tensor.name,
                        tensor.offset_bytes, last->name, covered));
      else if (tensor.offset_bytes > covered && !has_left_out_)
        add("ST_HOLE", tensor.name,
            fmt::format("{} bytes before \"{}\" belong to no tensor", tensor.offset_bytes - covered,
                        tensor.name));
      if (tensor.offset_bytes + tensor.bytes > covered) {
        covered = tensor.offset_bytes + tensor.bytes;
        last = &tensor;
      }
    }
    const auto size = static_cast<std::int64_t>(file_.size());
    if (covered > size)
      add("ST_TRUNCATED", fmt::format("byte {}", size),
          fmt::format("the file ends {} bytes before the last tensor does: {} bytes found, {} expected",
                      covered - size, size, covered));
    else if (covered < size && !has_left_out_)
      add("ST_TRAILING", fmt::format("byte {}", covered),
          fmt::format("{} bytes after the last tensor are not covered by any tensor", size - covered));
  }

  std::span<const std::byte> file_;
  std::string_view path_;
  Findings& findings_;
  std::int64_t data_start_ = 0;
  // Holes mean nothing when a tensor was left out, or cut short, because of a fault of its own.
  bool has_left_out_ = false;
};

}  // namespace

SafetensorsHeader read_safetensors(std::span<const std::byte> file, std::string_view path,
                                   Findings& findings) {
  if (auto foreign = foreign_content(file, path)) {
    findings.push_back(std::move(*foreign));
    return {};
  }
  return Reader(file, path, findings).read();
}

}  // namespace plimsoll::artifact
