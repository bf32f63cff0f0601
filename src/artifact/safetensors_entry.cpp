// SPDX-License-Identifier: Apache-2.0
#include "artifact/safetensors_entry.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "base/json.h"
#include "base/units.h"

namespace plimsoll::artifact {
namespace {

constexpr std::size_t kMaxRank = 64;               // far above any model; bounds a hostile shape
constexpr std::size_t kMaxEntryBytes = 64 * 1024;  // an entry of rank 64 has less than 2 KB
constexpr std::size_t kMaxSpellings = 24;          // there are about 20 dtypes
constexpr std::size_t kMaxBeginnings = 12;         // shapes in one layer
constexpr std::size_t kMaxBeginning = 256;         // bytes of one; others are read each for itself

bool read_dimensions(JsonScan& scan, Shape& shape, std::int64_t& elements) {
  if (!scan.take('[')) return false;
  elements = 1;
  bool has_overflow = false, has_zero = false;
  if (scan.take(']')) return true;
  do {
    const auto dimension = scan.plain_number();
    if (!dimension || shape.size() == kMaxRank) return false;
    shape.push_back(*dimension);
    has_zero |= *dimension == 0;
    has_overflow |= __builtin_mul_overflow(elements, *dimension, &elements);
  } while (scan.take(','));
  if (has_zero) elements = 0;
  return scan.take(']') && (has_zero || !has_overflow);
}

bool read_range(JsonScan& scan, std::int64_t& begin, std::int64_t& end) {
  if (!scan.take('[')) return false;
  const auto first = scan.plain_number();
  if (!first || !scan.take(',')) return false;
  const auto last = scan.plain_number();
  if (!last || !scan.take(']') || *last < *first) return false;
  begin = *first;
  end = *last;
  return true;
}

// The exact reader of one entry.
class OddReader {
 public:
  OddReader(std::string_view name, FindingList& findings) : name_(name), findings_(findings) {}

  OddEntry read(std::string_view text, std::int64_t data_start) {
    OddEntry odd;
    odd.is_incomplete = true;
    if (text.size() > kMaxEntryBytes) {
      add("ST_SHAPE", fmt::format("its entry has {} bytes, which no tensor needs", text.size()));
      return odd;
    }
    const auto value = parse_json(text, name_, {.max_depth = kEntryDepth + 1, .allow_bare_constants = false});
    if (!value || !value->is_object()) {
      add("ST_HEADER_JSON", "its entry is not an object of dtype, shape and data_offsets");
      return odd;
    }
    const bool repeats = tell_repeated(*value);
    const Json& spelling = (*value)["dtype"];
    const auto dtype = spelling.is_string() ? dtype_from_safetensors(*spelling.as_string()) : std::nullopt;
    if (!dtype) {
      add("ST_DTYPE", fmt::format("unknown dtype {}", shown(spelling)));
      return odd;
    }
    Tensor tensor;
    tensor.dtype = *dtype;
    const auto bytes = read_shape((*value)["shape"], tensor);
    const auto range = read_offsets((*value)["data_offsets"], data_start);
    if (!bytes || !range) return odd;
    tensor.offset_bytes = data_start + range->first;
    tensor.bytes = range->second - range->first;
    odd.is_incomplete = repeats || tensor.bytes != bytes->value;
    if (tensor.bytes != bytes->value) {
      add("ST_SIZE_MISMATCH", fmt::format("shape x dtype = {} bytes, its range in the file = {} bytes",
                                          bytes->value, tensor.bytes));
      tensor.bytes = std::min(tensor.bytes, bytes->value);  // counted as stored, never more than is there
    }
    odd.tensor = std::move(tensor);
    return odd;
  }

 private:
  void add(std::string_view id, std::string message) { findings_.add(id, name_, std::move(message)); }

  static std::string shown(const Json& value) {
    std::string text = dump(value);
    return text.size() > 200 ? text.substr(0, 200) + "..." : text;
  }

  bool tell_repeated(const Json& entry) {
    const auto& members = entry.members();
    for (std::size_t i = 0; i < members.size(); ++i)
      for (std::size_t j = 0; j < i && j < 8; ++j)
        if (members[i].first == members[j].first) {
          add("ST_DUP_KEY", fmt::format("its entry gives \"{}\" twice", members[i].first.substr(0, 80)));
          return true;
        }
    return false;
  }

  std::optional<Bytes> read_shape(const Json& shape, Tensor& tensor) {
    if (!shape.is_array() || shape.size() > kMaxRank) {
      add("ST_SHAPE", "the shape is not a list of dimensions");
      return std::nullopt;
    }
    std::int64_t elements = 1;
    bool has_overflow = false, has_zero = false, is_readable = true;
    for (const Json& item : shape.items()) {
      if (item.is_double() && *item.as_double() >= 0x1p63) {
        is_readable = false;
        continue;
      }
      if (!item.is_integer() || *item.as_integer() < 0) {
        add("ST_SHAPE", fmt::format("the shape holds {}: not a whole number from 0 up", shown(item)));
        return std::nullopt;
      }
      const std::int64_t dimension = *item.as_integer();
      tensor.shape.push_back(dimension);
      has_zero |= dimension == 0;
      has_overflow |= __builtin_mul_overflow(elements, dimension, &elements);
    }
    if (has_zero) elements = 0;
    const bool fits = is_readable && (has_zero || !has_overflow);
    if (fits && elements % info(tensor.dtype).block_elements != 0) {
      add("ST_SHAPE", fmt::format("{} elements of {} do not fill whole bytes", elements, name(tensor.dtype)));
      return std::nullopt;
    }
    const auto bytes = fits ? stored_bytes(tensor.dtype, elements) : std::nullopt;
    if (!bytes)
      add("ST_SHAPE_OVERFLOW",
          "the product of the dimensions does not fit 63 bits of bytes: " + shown(shape));
    return bytes;
  }

  // Offsets from the start of the data section: [begin, end).
  std::optional<std::pair<std::int64_t, std::int64_t>> read_offsets(const Json& offsets,
                                                                    std::int64_t data_start) {
    const auto whole = [](const Json& value) {
      return value.is_integer() ? value.as_integer() : std::nullopt;
    };
    std::optional<std::int64_t> begin, end;
    if (offsets.size() == 2 && offsets.is_array()) {
      begin = whole(offsets.items()[0]);
      end = whole(offsets.items()[1]);
    }
    if (!begin || !end || *begin < 0 || *end < 0) {
      add("ST_OFFSETS",
          fmt::format("data_offsets {} are not [begin, end] with 0 <= begin <= end", shown(offsets)));
      return std::nullopt;
    }
    if (*end < *begin) {
      add("ST_OFFSETS", fmt::format("data_offsets {}: begin > end", shown(offsets)));
      return std::nullopt;
    }
    if (!checked_sum(*end, data_start)) {
      add("ST_OFFSETS", fmt::format("data_offsets {} do not fit 63 bits", shown(offsets)));
      return std::nullopt;
    }
    return std::pair(*begin, *end);
  }

  std::string_view name_;
  FindingList& findings_;
};

}  // namespace

OddEntry read_odd_entry(std::string_view name, std::string_view text, std::int64_t data_start,
                        FindingList& findings) {
  return OddReader(name, findings).read(text, data_start);
}

bool PlainEntries::read_dtype(JsonScan& scan, DType& dtype) {
  const auto spelling = scan.plain_string();
  if (!spelling) return false;
  for (const auto& [text, known] : known_) {
    if (text != *spelling) continue;
    dtype = known;
    return true;
  }
  const auto found = dtype_from_safetensors(*spelling);
  if (!found) return false;
  dtype = *found;
  if (known_.size() < kMaxSpellings) known_.emplace_back(*spelling, *found);
  return true;
}

// A file has thousands of tensors and a few dtypes and shapes, which follow each other as they did before.
const PlainEntries::Beginning* PlainEntries::beginning_of(std::string_view entry) {
  if (beginnings_.empty()) return nullptr;
  std::size_t& likely = beginnings_[last_].next;
  if (!entry.starts_with(beginnings_[likely].text)) {
    const auto found = std::find_if(beginnings_.begin(), beginnings_.end(),
                                    [&](const Beginning& known) { return entry.starts_with(known.text); });
    if (found == beginnings_.end()) return nullptr;
    likely = static_cast<std::size_t>(found - beginnings_.begin());
  }
  last_ = likely;
  return &beginnings_[last_];
}

bool PlainEntries::read_like_another(JsonScan& scan, std::int64_t data_start, Tensor& tensor) {
  const Beginning* known = beginning_of(scan.rest());
  if (!known) return false;
  JsonScan ahead = scan;
  ahead.advance(known->text.size());
  std::int64_t begin = 0, end = 0;
  if (!read_range(ahead, begin, end) || !ahead.take('}') || known->tensor.bytes != end - begin) return false;
  tensor.dtype = known->tensor.dtype;
  tensor.shape = known->tensor.shape;
  tensor.bytes = known->tensor.bytes;
  tensor.offset_bytes = data_start + begin;
  scan = ahead;
  return true;
}

void PlainEntries::remember(std::string_view text, const Tensor& tensor) {
  if (text.empty() || text.size() > kMaxBeginning) return;
  const std::size_t place = beginnings_.size() < kMaxBeginnings ? beginnings_.size() : oldest_++;
  oldest_ %= kMaxBeginnings;
  if (place == beginnings_.size()) beginnings_.emplace_back();
  beginnings_[last_].next = place;
  beginnings_[place] = {text, tensor, place};
  last_ = place;
}

bool PlainEntries::read_plain(JsonScan& scan, std::int64_t data_start, Tensor& tensor) {
  if (read_like_another(scan, data_start, tensor)) return true;
  const std::string_view entry = scan.rest();
  std::string_view beginning;  // empty unless the offsets come last
  if (!scan.take('{')) return false;
  std::int64_t elements = 0, begin = 0, end = 0;
  unsigned seen = 0;
  do {
    const auto key = scan.plain_string();
    if (!key || !scan.take(':')) return false;
    unsigned field = 0;
    bool is_sound = false;
    if (*key == "dtype") {
      field = 1;
      is_sound = read_dtype(scan, tensor.dtype);
    } else if (*key == "shape") {
      field = 2;
      is_sound = (seen & field) == 0 && read_dimensions(scan, tensor.shape, elements);
    } else if (*key == "data_offsets") {
      field = 4;
      if (seen == 3) beginning = entry.substr(0, entry.size() - scan.rest().size());
      is_sound = read_range(scan, begin, end);
    }
    if (!is_sound || (seen & field) != 0) return false;
    seen |= field;
  } while (scan.take(','));
  if (!scan.take('}') || seen != 7) return false;
  const auto bytes = stored_bytes(tensor.dtype, elements);
  if (!bytes || bytes->value != end - begin) return false;
  tensor.bytes = end - begin;
  tensor.offset_bytes = data_start + begin;
  remember(beginning, tensor);
  return true;
}

}  // namespace plimsoll::artifact
