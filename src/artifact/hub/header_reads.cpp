// SPDX-License-Identifier: Apache-2.0
#include "artifact/hub/header_reads.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <span>

#include "artifact/gguf.h"
#include "artifact/zip_listing.h"
#include "base/units.h"

namespace plimsoll::artifact {
namespace {

constexpr std::int64_t kFirstRead = 100'000;           // holds most headers
constexpr std::int64_t kMaxHeaderBytes = 100'000'000;  // readers take no longer one
constexpr std::int64_t kMaxGgufHeader = 64 * kMiB;     // a vocabulary of a million words has 30 MiB
constexpr std::int64_t kMaxZipDirectory = 16 * kMiB;

class SparseFile {
 public:
  explicit SparseFile(const std::string& path) : path_(path), fd_(::open(path.c_str(), O_RDWR | O_CLOEXEC)) {}
  SparseFile(const SparseFile&) = delete;
  SparseFile& operator=(const SparseFile&) = delete;
  ~SparseFile() {
    if (fd_ >= 0) ::close(fd_);
  }

  Status write(std::string_view bytes, std::int64_t at) {
    while (!bytes.empty()) {
      const ssize_t put = ::pwrite(fd_, bytes.data(), bytes.size(), at);
      if (put < 0 && errno == EINTR) continue;
      if (put < 0)
        return fail(ErrorCode::kUsage, std::string("a header cannot be kept: ") + std::strerror(errno), path_,
                    "make room in the folder for temporary files (TMPDIR)");
      bytes.remove_prefix(static_cast<std::size_t>(put));
      at += put;
    }
    return {};
  }

 private:
  std::string path_;
  int fd_;
};

std::uint64_t little_endian(std::string_view text, std::size_t at, int bytes) {
  std::uint64_t value = 0;
  for (int i = bytes - 1; i >= 0; --i)
    value = value << 8 | static_cast<unsigned char>(text[at + static_cast<std::size_t>(i)]);
  return value;
}

// The describing parts of one remote file, fetched piece by piece.
class HeaderReader {
 public:
  HeaderReader(const std::string& path, const Asked& asked, const HubFile& file, HubClient& client)
      : sparse_(path), asked_(asked), file_(file), client_(client) {}

  Status read(Disagreement& disagrees) {
    if (file_.bytes == 0) return {};
    PLIMSOLL_TRY(head_, head_of_listed(client_, file_, asked_, disagrees));
    if (file_.path.ends_with(".safetensors")) return read_safetensors_part();
    if (file_.path.ends_with(".gguf")) return read_gguf_part();
    return read_zip_part();
  }

 private:
  // Bytes [first, end) of the remote file, to their place in the sparse one.
  Result<std::string> copy(std::int64_t first, std::int64_t end) {
    PLIMSOLL_TRY(std::string text, client_.range(head_, first, end - 1, asked_));
    PLIMSOLL_TRY_VOID(sparse_.write(text, first));
    return text;
  }

  Status read_safetensors_part() {
    const std::int64_t first_end = std::min(kFirstRead, file_.bytes);
    PLIMSOLL_TRY(const std::string text, copy(0, first_end));
    if (text.size() < 8) return {};
    const std::uint64_t length = little_endian(text, 0, 8);
    // A length that the file cannot have is for the reader to tell.
    if (length > static_cast<std::uint64_t>(std::min(kMaxHeaderBytes, file_.bytes - 8))) return {};
    const std::int64_t end = 8 + static_cast<std::int64_t>(length);
    if (end <= first_end) return {};
    PLIMSOLL_TRY([[maybe_unused]] const std::string rest, copy(first_end, end));
    return {};
  }

  // A GGUF header does not say how long it is: read on until it can be read.
  Status read_gguf_part() {
    std::string text;
    const std::int64_t most = std::min(kMaxGgufHeader, file_.bytes);
    for (std::int64_t end = std::min(kFirstRead, most);; end = std::min(4 * end, most)) {
      PLIMSOLL_TRY(const std::string more, copy(static_cast<std::int64_t>(text.size()), end));
      text += more;
      if (end == most || !text.starts_with("GGUF")) return {};
      Findings findings;
      const HeaderSource source{.bytes = std::as_bytes(std::span(text.data(), text.size())),
                                .path = file_.path,
                                .file_bytes = file_.bytes};
      if (read_gguf(source, findings).is_readable || !may_go_on(findings)) return {};
    }
  }

  // Faults that a header also shows while its end has not come yet; with any other, more bytes change
  // nothing.
  static bool may_go_on(const Findings& findings) {
    return std::any_of(findings.begin(), findings.end(), [](const Finding& finding) {
      return finding.id == "GGUF_TRUNCATED" || finding.id == "GGUF_STRING_LEN" ||
             finding.id == "GGUF_ARRAY_LEN";
    });
  }

  Status read_zip_part() {
    PLIMSOLL_TRY([[maybe_unused]] const std::string begin,
                 copy(0, std::min<std::int64_t>(1024, file_.bytes)));
    const std::int64_t tail_begin =
        std::max<std::int64_t>(0, file_.bytes - static_cast<std::int64_t>(kZipTail));
    PLIMSOLL_TRY(const std::string tail, copy(tail_begin, file_.bytes));
    const auto directory =
        find_zip_directory(std::as_bytes(std::span(tail)), static_cast<std::uint64_t>(file_.bytes));
    if (!directory || directory->offset >= static_cast<std::uint64_t>(tail_begin)) return {};
    const auto begin_at = static_cast<std::int64_t>(directory->offset);
    if (file_.bytes - begin_at > kMaxZipDirectory) return {};
    PLIMSOLL_TRY([[maybe_unused]] const std::string rest, copy(begin_at, tail_begin));
    return {};
  }

  SparseFile sparse_;
  const Asked& asked_;
  const HubFile& file_;
  HubClient& client_;
  FileHead head_;
};

// Commas and colons between the parts of a value.
std::int64_t num_separators(const Json& value) {
  const std::size_t parts = value.size();
  std::size_t own = parts == 0 ? 0 : parts - 1;
  if (value.is_object()) own += parts;
  auto sum = static_cast<std::int64_t>(own);
  for (const auto& [key, child] : value.members()) sum += num_separators(child);
  for (const Json& child : value.items()) sum += num_separators(child);
  return sum;
}

}  // namespace

Status make_sparse(const std::string& path, std::int64_t bytes) {
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  const bool is_made = fd >= 0 && ::ftruncate(fd, bytes) == 0;
  const std::string reason = is_made ? "" : std::strerror(errno);
  if (fd >= 0) ::close(fd);
  if (is_made) return {};
  return fail(ErrorCode::kUsage, "a stand-in for a remote file cannot be made: " + reason, path,
              "name a folder on another file system with TMPDIR");
}

Status read_header_into(const std::string& path, const Asked& asked, const HubFile& file, HubClient& client,
                        Disagreement& disagrees) {
  return HeaderReader(path, asked, file, client).read(disagrees);
}

std::string safetensors_head(const Json& header, std::int64_t file_bytes) {
  if (!header.is_object()) return {};
  std::int64_t data_end = 0;
  for (const auto& [name, tensor] : header.members()) {
    if (name == "__metadata__") continue;
    const auto& offsets = tensor["data_offsets"].items();
    const auto end = offsets.size() == 2 ? offsets[1].as_integer() : std::nullopt;
    if (!end || *end < 0) return {};
    data_end = std::max(data_end, *end);
  }
  std::string text = dump(header);
  if (data_end > file_bytes - 8) return {};
  const std::int64_t length = file_bytes - 8 - data_end;
  // Writers end the header at a multiple of 8, or write it as it comes, with or without a space behind each
  // separator. What does not fit is another file's header, or a file that was cut.
  const auto written = static_cast<std::int64_t>(text.size());
  const bool is_likely = length % 8 == 0 || length == written || length == written + num_separators(header);
  if (!is_likely || length > kMaxHeaderBytes || static_cast<std::int64_t>(text.size()) > length) return {};
  text.resize(static_cast<std::size_t>(length), ' ');
  std::string head;
  for (int i = 0; i < 8; ++i) head += static_cast<char>(static_cast<std::uint64_t>(length) >> (8 * i) & 0xFF);
  return head + text;
}

std::vector<std::string> read_all_headers_into(const std::string& folder, const Asked& asked,
                                               const std::string& index,
                                               const std::vector<const HubFile*>& shards, HubClient& client) {
  std::vector<std::string> written;
  const auto answer = client.json(
      "/api/models/" + quoted(asked.repo, true) + "/safetensors-metadata/" + quoted(index, true), asked);
  if (!answer) return written;
  for (const auto& [name, header] : answer->value["headers"].members()) {
    const auto shard =
        std::find_if(shards.begin(), shards.end(), [&](const HubFile* f) { return f->path == name; });
    if (shard == shards.end()) continue;
    const std::string head = safetensors_head(header, (*shard)->bytes);
    if (!head.empty() && SparseFile(folder + "/" + name).write(head, 0)) written.push_back(name);
  }
  return written;
}

}  // namespace plimsoll::artifact
