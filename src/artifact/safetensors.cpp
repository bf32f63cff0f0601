// SPDX-License-Identifier: Apache-2.0
#include "artifact/safetensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "artifact/content.h"
#include "artifact/finding_list.h"
#include "artifact/json_scan.h"
#include "artifact/name_table.h"
#include "artifact/safetensors_entry.h"
#include "base/large_pages.h"
#include "base/utf8.h"

namespace plimsoll::artifact {
namespace {

constexpr std::int64_t kLengthField = 8;               // little-endian u64 before the header
constexpr std::int64_t kMaxHeaderBytes = 100'000'000;  // the reference reader's own limit
// The largest published models have some 300,000 tensors over a hundred files, and up to 92,000 in one;
// bounds memory.
constexpr std::size_t kMaxTensors = 131'072;
// Of all names in one file; the 92,000 have 6 MB.
constexpr std::size_t kMaxNameBytes = std::size_t{16} << 20;
// In a header larger than this, which is no model's, names are copied: else each holds its page in memory.
constexpr std::size_t kMaxViewedHeader = std::size_t{32} << 20;
constexpr std::size_t kCopiesBlock = std::size_t{64} << 10;
constexpr std::size_t kLeastEntry = 50;                 // bytes of the shortest tensor's entry in a header
constexpr std::size_t kMaxRoom = std::size_t{1} << 19;  // tensors of many files: for more the list moves
// Pages of a header are given back in steps of this; names are looked at again only where hashes are equal.
constexpr std::size_t kReleaseStep = std::size_t{8} << 20;
constexpr std::size_t kUtf8Window = std::size_t{1} << 20;

// The length of the header; at least 8 bytes must be given.
std::uint64_t stated_length(std::span<const std::byte> bytes) {
  std::uint64_t length = 0;
  for (std::size_t i = kLengthField; i-- > 0;)
    length = length << 8 | std::to_integer<std::uint64_t>(bytes[i]);
  return length;
}

// What one file after the other uses again.
struct Workspace {
  std::vector<std::string_view> names;  // of all members of a file, also those left out
  NameTable table;                      // numbers are places in names
};

class Reader {
 public:
  Reader(const HeaderSource& source, Findings& findings, SafetensorsHeader& list, Workspace& workspace)
      : source_(source),
        findings_(std::string(source.path), findings),
        header_(list),
        first_(list.tensors.size()),
        names_(workspace.names),
        table_(workspace.table) {}

  bool read(std::size_t num_files) {
    const auto length = header_length();
    if (!length) return false;
    text_ = as_text(source_.bytes.subspan(kLengthField, static_cast<std::size_t>(*length)));
    data_start_ = kLengthField + *length;
    make_room(num_files);
    JsonScan scan(text_);
    if (!read_members(scan)) return false;
    if (data_start_ % 8 != 0)
      findings_.add(
          "ST_ALIGNMENT", "byte 0",
          fmt::format("tensor data starts at byte {}, which is not a multiple of 8: mapped values are "
                      "misaligned",
                      data_start_),
          FindingLevel::kWarning, "save the file again with a current safetensors");
    sort_by_offset();
    check_ranges();
    return true;
  }

 private:
  // Room that is not used costs addresses, not memory.
  void make_room(std::size_t num_files) {
    const std::size_t most = std::min(text_.size() / kLeastEntry + 1, kMaxTensors);
    names_.clear();
    names_.reserve(most);
    table_room_ = most;
    table_.reset(table_room_);
    if (header_.tensors.capacity() - first_ >= most) return;
    const std::size_t room = first_ + std::max(most, num_files > 1 ? kMaxRoom : 0);
    header_.tensors.reserve(room);
    header_.hashes.reserve(room);
    if (first_ > 0) return;  // the memory is in use already
    use_large_pages(header_.tensors.data(), room * sizeof(Tensor));
    use_large_pages(header_.hashes.data(), room * sizeof(std::uint64_t));
  }

  std::int64_t file_size() const {
    return source_.file_bytes.value_or(static_cast<std::int64_t>(source_.bytes.size()));
  }

  std::optional<std::int64_t> header_length() {
    const auto size = file_size();
    if (size < kLengthField || source_.bytes.size() < kLengthField) {
      findings_.add("ST_TOO_SMALL", "byte 0",
                    fmt::format("the file has {} bytes, less than the 8-byte header length", size));
      return std::nullopt;
    }
    const std::uint64_t length = stated_length(source_.bytes);
    if (length > static_cast<std::uint64_t>(kMaxHeaderBytes)) {
      findings_.add("ST_HEADER_LEN", "byte 0",
                    fmt::format("the header length is {}, more than the {} that readers take", length,
                                kMaxHeaderBytes));
      return std::nullopt;
    }
    if (length > source_.bytes.size() - kLengthField) {
      findings_.add("ST_HEADER_LEN", "byte 0",
                    fmt::format("the header length is {}, but only {} bytes follow it", length,
                                source_.bytes.size() - kLengthField));
      return std::nullopt;
    }
    return static_cast<std::int64_t>(length);
  }

  // Tells where the header stops being JSON. Always false.
  bool not_json(const JsonScan& scan, std::string_view reason) {
    const std::size_t at = scan.position();
    const std::string place = fmt::format("byte {}", kLengthField + static_cast<std::int64_t>(at));
    // The reference reader looks at the encoding first; here as far as a person would look.
    const std::string_view near = text_.substr(0, at + kUtf8Window);
    const bool is_cut = near.size() < text_.size();
    if (scan.is_bad_utf8() || (!is_cut && at < kUtf8Window && !is_valid_utf8(near)))
      findings_.add("ST_HEADER_UTF8", place, "the header is not UTF-8");
    else
      findings_.add("ST_HEADER_JSON", place,
                    fmt::format("the header is not a JSON object: {} at byte {} of the file",
                                reason.empty() ? std::string_view("bad syntax") : reason,
                                kLengthField + static_cast<std::int64_t>(at)));
    return false;
  }

  bool read_members(JsonScan& scan) {
    if (text_.empty() || text_.front() != '{') return not_json(scan, "it does not begin with '{'");
    scan.take('{');
    if (!scan.take('}')) {
      do {
        if (names_.size() == kMaxTensors) {
          findings_.add("ST_COUNT", "byte 8",
                        fmt::format("the header names more than {} tensors; no model does", kMaxTensors));
          return false;
        }
        if (!read_member(scan)) return !is_refused_ && not_json(scan, scan.reason());
        release_pages(scan.position());
      } while (scan.take(','));
      if (!scan.take('}')) return not_json(scan, "bad syntax");
    }
    scan.skip_space();
    return scan.is_at_end() || not_json(scan, "text behind the object");
  }

  void release_pages(std::size_t position) {
    if (position - released_ < kReleaseStep || !source_.mapping) return;
    source_.mapping->release(source_.bytes.subspan(kLengthField + released_, position - released_));
    released_ = position;
  }

  bool read_member(JsonScan& scan) {
    std::string_view name;
    const auto plain = scan.plain_string();
    std::string spelled;
    if (!plain && !scan.string(spelled)) return false;
    name = plain ? *plain : std::string_view(spelled);
    name_bytes_ += name.size();
    if (name_bytes_ > kMaxNameBytes) {
      is_refused_ = true;
      return findings_.add(
          "ST_COUNT", "byte 8",
          fmt::format("the names of tensors take more than {} bytes; no model's do", kMaxNameBytes));
    }
    if (!plain || (text_.size() > kMaxViewedHeader && source_.mapping)) name = copied(name);
    if (!scan.take(':')) return false;
    const std::uint64_t hash = hash_of(name);
    if (names_.size() == table_room_) enlarge_table();
    const bool is_new = !table_.insert(hash, static_cast<std::uint32_t>(names_.size()),
                                       [&](std::uint32_t other) { return names_[other] == name; });
    names_.push_back(name);
    if (!is_new) {
      findings_.add("ST_DUP_KEY", name, fmt::format("the header names \"{}\" twice", name));
      has_left_out_ = true;
      return scan.value(kEntryDepth).has_value();
    }
    if (name == "__metadata__") return read_metadata(scan);
    const JsonScan before = scan;
    header_.tensors.emplace_back();
    if (entries_.read_plain(scan, data_start_, header_.tensors.back())) {
      header_.tensors.back().name = name;
      header_.hashes.push_back(hash);
      return true;
    }
    header_.tensors.pop_back();
    scan = before;
    const auto text = scan.value(kEntryDepth);
    if (!text) return false;
    OddEntry odd = read_odd_entry(name, *text, data_start_, findings_);
    has_left_out_ |= odd.is_incomplete;
    if (odd.tensor) {
      odd.tensor->name = name;
      header_.tensors.push_back(std::move(*odd.tensor));
      header_.hashes.push_back(hash);
    }
    return true;
  }

  // The copy stays where it is: a block is never given more than it has room for.
  std::string_view copied(std::string_view name) {
    auto& blocks = header_.spelled;
    if (blocks.empty() || blocks.back().capacity() - blocks.back().size() < name.size())
      blocks.emplace_back().reserve(std::max(name.size(), kCopiesBlock));
    std::string& block = blocks.back();
    const std::size_t at = block.size();
    block += name;
    return std::string_view(block).substr(at);
  }

  // Members that are no tensors may be shorter than any tensor's entry, and then there are more than
  // foreseen.
  void enlarge_table() {
    table_room_ = std::min(2 * table_room_, kMaxTensors);
    table_.reset(table_room_);
    for (std::uint32_t i = 0; i < names_.size(); ++i)
      table_.insert(hash_of(names_[i]), i, [&](std::uint32_t other) { return names_[other] == names_[i]; });
  }

  bool read_metadata(JsonScan& scan) {
    if (scan.peek() != '{') {
      findings_.add("ST_METADATA", "__metadata__", "__metadata__ is not an object of strings");
      return scan.value(kEntryDepth).has_value();
    }
    scan.take('{');
    if (scan.take('}')) return true;
    do {
      const auto key = scan.value(1);
      if (!key || key->front() != '"' || !scan.take(':')) return false;
      const auto value = scan.value(kEntryDepth);
      if (!value) return false;
      if (value->front() != '"')
        findings_.add(
            "ST_METADATA", "__metadata__",
            fmt::format("__metadata__ maps {} to something that is not a string", key->substr(0, 80)));
      release_pages(scan.position());
    } while (scan.take(','));
    return scan.take('}');
  }

  // Writers list tensors by offset as a rule; then this is one look.
  void sort_by_offset() {
    const std::span<Tensor> tensors = std::span(header_.tensors).subspan(first_);
    const std::span<std::uint64_t> hashes_here = std::span(header_.hashes).subspan(first_);
    const auto place = [](const Tensor& tensor) { return std::pair(tensor.offset_bytes, tensor.bytes); };
    if (std::is_sorted(tensors.begin(), tensors.end(),
                       [&](const Tensor& a, const Tensor& b) { return place(a) < place(b); }))
      return;
    std::vector<std::uint32_t> order(tensors.size());
    std::iota(order.begin(), order.end(), 0U);
    std::stable_sort(order.begin(), order.end(),
                     [&](std::uint32_t a, std::uint32_t b) { return place(tensors[a]) < place(tensors[b]); });
    std::vector<Tensor> sorted;
    std::vector<std::uint64_t> hashes;
    sorted.reserve(order.size());
    hashes.reserve(order.size());
    for (const std::uint32_t index : order) {
      sorted.push_back(std::move(tensors[index]));
      hashes.push_back(hashes_here[index]);
    }
    std::move(sorted.begin(), sorted.end(), tensors.begin());
    std::copy(hashes.begin(), hashes.end(), hashes_here.begin());
  }

  // The format wants the tensors to cover the data section once, without holes.
  void check_ranges() {
    std::int64_t covered = data_start_;
    const Tensor* last = nullptr;
    for (const Tensor& tensor : std::span(header_.tensors).subspan(first_)) {
      if (tensor.bytes == 0) continue;
      if (tensor.offset_bytes < covered && last)
        findings_.add("ST_OVERLAP", tensor.name,
                      fmt::format("\"{}\" begins at byte {}, inside \"{}\", which ends at byte {}",
                                  tensor.name, tensor.offset_bytes, last->name, covered));
      else if (tensor.offset_bytes > covered && !has_left_out_)
        findings_.add("ST_HOLE", tensor.name,
                      fmt::format("{} bytes before \"{}\" belong to no tensor", tensor.offset_bytes - covered,
                                  tensor.name));
      if (tensor.offset_bytes + tensor.bytes > covered) {
        covered = tensor.offset_bytes + tensor.bytes;
        last = &tensor;
      }
    }
    const auto size = file_size();
    if (covered > size)
      findings_.add(
          "ST_TRUNCATED", fmt::format("byte {}", size),
          fmt::format("the file ends {} bytes before the last tensor does: {} bytes found, {} expected",
                      covered - size, size, covered));
    else if (covered < size && !has_left_out_)
      findings_.add(
          "ST_TRAILING", fmt::format("byte {}", covered),
          fmt::format("{} bytes after the last tensor are not covered by any tensor", size - covered));
  }

  HeaderSource source_;
  FindingList findings_;
  SafetensorsHeader& header_;  // tensors of earlier files come first in it
  std::size_t first_;          // place of this file's first tensor
  std::string_view text_;
  std::int64_t data_start_ = 0;
  std::size_t released_ = 0;
  std::size_t name_bytes_ = 0;
  bool is_refused_ = false;  // for a reason that has been told
  std::vector<std::string_view>& names_;
  NameTable& table_;
  std::size_t table_room_ = 0;  // names that it was made for
  PlainEntries entries_;
  // Holes mean nothing when a tensor was left out, or cut short, because of a fault of its own.
  bool has_left_out_ = false;
};

}  // namespace

std::size_t header_bytes(std::span<const std::byte> first, std::size_t file_bytes) {
  if (first.size() < kLengthField) return file_bytes;
  const std::uint64_t length = stated_length(first);
  if (length > kMaxHeaderBytes || length > file_bytes - kLengthField) return file_bytes;
  return kLengthField + static_cast<std::size_t>(length);
}

struct HeaderListReader::Scratch {
  Workspace workspace;
};

HeaderListReader::HeaderListReader(std::size_t num_files)
    : num_files_(num_files), scratch_(std::make_unique<Scratch>()) {}

HeaderListReader::~HeaderListReader() = default;

bool HeaderListReader::read(const HeaderSource& source, Findings& findings) {
  if (auto foreign = foreign_content(source.bytes, source.path)) {
    findings.push_back(std::move(*foreign));
    return false;
  }
  return Reader(source, findings, list_, scratch_->workspace).read(num_files_);
}

SafetensorsHeader read_safetensors(const HeaderSource& source, Findings& findings) {
  HeaderListReader reader(1);
  const bool is_readable = reader.read(source, findings);
  SafetensorsHeader header = reader.take();
  header.is_readable = is_readable;
  return header;
}

}  // namespace plimsoll::artifact
