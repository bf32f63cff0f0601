// SPDX-License-Identifier: Apache-2.0
#include "artifact/zip_listing.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>

#include "artifact/byte_cursor.h"
#include "artifact/content.h"

namespace plimsoll::artifact {
namespace {

// Signatures and fixed lengths of the format's records (APPNOTE 4.3.12 to 4.3.16).
constexpr std::uint32_t kMemberMagic = 0x02014b50, kEnd64Magic = 0x06064b50, kLocator64Magic = 0x07064b50;
constexpr std::string_view kEndMagic("PK\x05\x06", 4);
constexpr std::size_t kEndBytes = 22, kLocator64Bytes = 20, kMaxComment = 65'535;
constexpr std::int64_t kLeastMember = 46;
constexpr std::uint16_t kExtra64 = 1;  // the extra field with 64-bit sizes
constexpr std::uint32_t kIs64 = 0xFFFFFFFF;

// Looks for the directory in the end of an archive.
class EndReader {
 public:
  EndReader(std::span<const std::byte> tail, std::uint64_t file_bytes)
      : tail_(tail), before_(file_bytes - tail.size()) {}

  std::optional<ZipDirectory> read() const {
    const std::string_view text = as_text(tail_);
    const std::size_t from = text.size() - std::min(text.size(), kEndBytes + kMaxComment);
    const std::size_t found = text.substr(from).rfind(kEndMagic);
    if (found == std::string_view::npos || text.size() - from - found < kEndBytes) return std::nullopt;
    const std::size_t end_at = from + found;
    ByteCursor end(tail_.subspan(end_at + 8));
    std::uint16_t on_disk = 0, count = 0;
    std::uint32_t bytes = 0, offset = 0;
    if (!end.read(on_disk) || !end.read(count) || !end.read(bytes) || !end.read(offset)) return std::nullopt;
    ZipDirectory directory{offset, bytes, count};
    if (end_at >= kLocator64Bytes) read_wide(end_at - kLocator64Bytes, directory);
    return directory;
  }

 private:
  // A 64-bit end record, where the locator before the plain one names it.
  void read_wide(std::size_t locator_at, ZipDirectory& directory) const {
    ByteCursor locator(tail_.subspan(locator_at));
    std::uint32_t magic = 0, disk = 0;
    std::uint64_t at = 0;
    if (!locator.read(magic) || magic != kLocator64Magic || !locator.read(disk) || !locator.read(at) ||
        at < before_ || at - before_ > tail_.size())
      return;
    ByteCursor end(tail_.subspan(static_cast<std::size_t>(at - before_)));
    std::uint64_t record_bytes = 0, on_disk = 0;
    std::uint32_t versions = 0, disk_a = 0, disk_b = 0;
    ZipDirectory wide;
    if (end.read(magic) && magic == kEnd64Magic && end.read(record_bytes) && end.read(versions) &&
        end.read(disk_a) && end.read(disk_b) && end.read(on_disk) && end.read(wide.count) &&
        end.read(wide.bytes) && end.read(wide.offset))
      directory = wide;
  }

  std::span<const std::byte> tail_;
  std::uint64_t before_;  // bytes of the file that are not in tail_
};

class Lister {
 public:
  Lister(std::span<const std::byte> file, std::string_view path) : file_(file), path_(path) {}

  Status list(const std::function<void(const ZipMember&)>& visit) {
    const std::uint64_t size = file_.size();
    const auto found = find_zip_directory(file_, size);
    if (!found) return broken("it has no directory at its end; was it cut off?");
    const ZipDirectory& directory = *found;
    if (directory.offset > size || directory.bytes > size - directory.offset ||
        directory.count > directory.bytes / kLeastMember)
      return broken(
          fmt::format("its directory of {} members, {} bytes at {}, does not lie in a file of {} bytes",
                      directory.count, directory.bytes, directory.offset, size));
    ByteCursor cursor(
        file_.subspan(static_cast<std::size_t>(directory.offset), static_cast<std::size_t>(directory.bytes)));
    for (std::uint64_t i = 0; i < directory.count; ++i) {
      ZipMember member;
      if (!read_member(cursor, member))
        return broken(fmt::format("member {} of its directory is cut off or no member", i + 1));
      if (member.bytes < 0 || member.stored_bytes < 0 ||
          static_cast<std::uint64_t>(member.stored_bytes) > size)
        return broken(fmt::format("member {} is stated to take {} bytes in a file of {}", i + 1,
                                  static_cast<std::uint64_t>(member.stored_bytes), size));
      visit(member);
    }
    return {};
  }

 private:
  tl::unexpected<Error> broken(std::string what) const {
    return fail(ErrorCode::kMalformed, "the zip archive is damaged: " + std::move(what), std::string(path_),
                "download the file again");
  }

  static bool read_member(ByteCursor& cursor, ZipMember& member) {
    std::uint32_t magic = 0, crc = 0, stored = 0, bytes = 0, attributes = 0, local = 0;
    std::uint16_t made_by = 0, needs = 0, flags = 0, method = 0, time = 0, date = 0, name = 0, extra = 0,
                  comment = 0, disk = 0, inner = 0;
    const bool is_whole = cursor.read(magic) && magic == kMemberMagic && cursor.read(made_by) &&
                          cursor.read(needs) && cursor.read(flags) && cursor.read(method) &&
                          cursor.read(time) && cursor.read(date) && cursor.read(crc) && cursor.read(stored) &&
                          cursor.read(bytes) && cursor.read(name) && cursor.read(extra) &&
                          cursor.read(comment) && cursor.read(disk) && cursor.read(inner) &&
                          cursor.read(attributes) && cursor.read(local);
    if (!is_whole) return false;
    const auto text = cursor.text(name);
    const auto extras = text ? cursor.text(extra) : std::nullopt;
    if (!extras || !cursor.text(comment)) return false;
    member = {*text, bytes, stored, method != 0};
    if (bytes == kIs64 || stored == kIs64) read_sizes64(*extras, bytes == kIs64, stored == kIs64, member);
    return true;
  }

  // The wide sizes stand in the order unpacked, packed, each only where the narrow one is all ones.
  static void read_sizes64(std::string_view extras, bool has_bytes, bool has_stored, ZipMember& member) {
    ByteCursor cursor(std::as_bytes(std::span(extras)));
    std::uint16_t id = 0, length = 0;
    while (cursor.read(id) && cursor.read(length)) {
      if (id != kExtra64) {
        if (!cursor.text(length)) return;
        continue;
      }
      std::int64_t wide = 0;
      if (has_bytes && cursor.read(wide)) member.bytes = wide;
      if (has_stored && cursor.read(wide)) member.stored_bytes = wide;
      return;
    }
  }

  std::span<const std::byte> file_;
  std::string_view path_;
};

}  // namespace

bool looks_like_zip(std::span<const std::byte> file) {
  return as_text(file.first(std::min<std::size_t>(file.size(), 4))) == std::string_view("PK\x03\x04", 4);
}

std::optional<ZipDirectory> find_zip_directory(std::span<const std::byte> tail, std::uint64_t file_bytes) {
  return EndReader(tail, file_bytes).read();
}

Status for_each_zip_member(std::span<const std::byte> file, std::string_view path,
                           const std::function<void(const ZipMember&)>& visit) {
  return Lister(file, path).list(visit);
}

}  // namespace plimsoll::artifact
