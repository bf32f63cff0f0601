// SPDX-License-Identifier: Apache-2.0
#include "engine/prefix_file.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <optional>
#include <span>

#include "base/hash.h"
#include "base/json.h"
#include "base/mapped_file.h"
#include "kernels/kernels.h"

namespace plimsoll::engine {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kMagic = "plimsoll prefixes 1\n";
/// Rises when a change of the engine changes the bits that it writes into the pool.
constexpr int kArithmetic = 1;
constexpr std::size_t kDigestBytes = 64;          // hex digits at the end
constexpr std::int64_t kSampledBytes = 4096;      // at three places of each tensor
constexpr std::size_t kMostPrefixes = 1 << 20;    // of a file; a table is held in memory
constexpr std::uint32_t kMostKeyBytes = 1 << 20;  // of one block's salt and contents

template <class T>
std::span<const std::byte> bytes_of(const T& value) {
  return std::as_bytes(std::span(&value, 1));
}

void add_text(Digest& digest, std::string_view text) {
  digest.add(bytes_of(text.size()));
  digest.add(std::as_bytes(std::span(text)));
}

void add_samples(Digest& digest, std::span<const std::byte> data) {
  const auto size = static_cast<std::int64_t>(data.size());
  const std::int64_t length = std::min(size, kSampledBytes);
  for (const std::int64_t at : {std::int64_t{0}, (size - length) / 2, size - length})
    digest.add(data.subspan(static_cast<std::size_t>(at), static_cast<std::size_t>(length)));
}

/// A new file of the owner's beside `path`, written with its digest. What is not put in place is removed.
class Writer {
 public:
  explicit Writer(const std::string& path)
      : temporary_(path + ".partial.XXXXXX"),
        digest_(DigestKind::kSha256),
        fd_(::mkstemp(temporary_.data())) {
    if (fd_ < 0) error_ = errno;
  }
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;
  ~Writer() {
    if (fd_ < 0) return;
    ::close(fd_);
    ::unlink(temporary_.c_str());
  }

  void add(std::span<const std::byte> data) {
    digest_.add(data);
    write(data);
  }
  template <class T>
  void add_number(const T& value) {
    add(bytes_of(value));
  }
  /// Ends the file with its digest and puts it in place. The system's reason when something went wrong.
  std::optional<std::string> put_in_place(const std::string& path) {
    const std::string digest = digest_.finish();
    write(std::as_bytes(std::span(digest)));
    if (error_ == 0 && (::fsync(fd_) != 0 || ::rename(temporary_.c_str(), path.c_str()) != 0)) error_ = errno;
    if (error_ != 0) return std::strerror(error_);
    ::close(std::exchange(fd_, -1));
    return std::nullopt;
  }

 private:
  void write(std::span<const std::byte> data) {
    while (error_ == 0 && !data.empty()) {
      const ssize_t done = ::write(fd_, data.data(), data.size());
      if (done < 0 && errno != EINTR) error_ = errno;
      if (done > 0) data = data.subspan(static_cast<std::size_t>(done));
    }
  }

  std::string temporary_;
  Digest digest_;
  int fd_ = -1;
  int error_ = 0;
};

/// Those that a file may hold, with parents renumbered; what stands behind one that is left out goes with it.
std::vector<schedule::KeptPrefix> storable(std::vector<schedule::KeptPrefix> prefixes) {
  std::vector<std::int32_t> new_index(prefixes.size(), -1);
  std::vector<schedule::KeptPrefix> stored;
  for (std::size_t i = 0; i < prefixes.size(); ++i) {
    auto& kept = prefixes[i];
    if (kept.key.size() > kMostKeyBytes) continue;
    if (kept.parent >= 0) {
      kept.parent = new_index[static_cast<std::size_t>(kept.parent)];
      if (kept.parent < 0) continue;
    }
    if (stored.size() == kMostPrefixes) break;  // the rest was used longer ago
    new_index[i] = static_cast<std::int32_t>(stored.size());
    stored.push_back(std::move(kept));
  }
  return stored;
}

/// Halves that a process left which was killed while it wrote.
void remove_old_partials(const std::string& path) {
  const fs::path file(path);
  const auto too_old = fs::file_time_type::clock::now() - std::chrono::hours(1);
  std::error_code unknown;
  for (const auto& entry : fs::directory_iterator(file.parent_path(), unknown)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(file.filename().string() + ".partial.")) continue;
    if (entry.last_write_time(unknown) < too_old) fs::remove(entry.path(), unknown);
  }
}

/// Takes pieces from the front; nothing once there is too little left.
class Reader {
 public:
  explicit Reader(std::span<const std::byte> data) : rest_(data) {}
  std::optional<std::span<const std::byte>> take(std::size_t size) {
    if (size > rest_.size()) return std::nullopt;
    const auto taken = rest_.first(size);
    rest_ = rest_.subspan(size);
    return taken;
  }
  template <class T>
  std::optional<T> number() {
    const auto taken = take(sizeof(T));
    if (!taken) return std::nullopt;
    T value;
    std::memcpy(&value, taken->data(), sizeof value);
    return value;
  }
  std::size_t size() const { return rest_.size(); }

 private:
  std::span<const std::byte> rest_;
};

/// The table of a file: prefixes whose blocks are numbered from 0 in the order of their content behind it.
std::optional<std::vector<schedule::KeptPrefix>> read_table(Reader& reader, std::int64_t vocab_size,
                                                            std::size_t block_size, std::size_t num_groups) {
  const auto count = reader.number<std::uint64_t>();
  if (!count || *count > kMostPrefixes || *count > reader.size() / (block_size * sizeof(schedule::TokenId)))
    return std::nullopt;
  std::vector<schedule::KeptPrefix> prefixes(static_cast<std::size_t>(*count));
  schedule::BlockId next = 0;
  for (auto& kept : prefixes) {
    const auto parent = reader.number<std::int32_t>();
    const auto key_bytes = reader.number<std::uint32_t>();
    if (!parent || !key_bytes || *key_bytes > kMostKeyBytes) return std::nullopt;
    const auto present = reader.take(num_groups);
    const auto tokens = reader.take(block_size * sizeof(schedule::TokenId));
    const auto key = reader.take(*key_bytes);
    if (!present || !tokens || !key) return std::nullopt;
    kept.parent = *parent;
    kept.key.assign(reinterpret_cast<const char*>(key->data()), key->size());
    kept.tokens.resize(block_size);
    std::memcpy(kept.tokens.data(), tokens->data(), tokens->size());
    for (const auto token : kept.tokens)
      if (token < 0 || token >= vocab_size) return std::nullopt;
    for (const std::byte is_present : *present) {
      if (is_present > std::byte{1}) return std::nullopt;
      kept.blocks.push_back(is_present == std::byte{0} ? schedule::kNoBlock : next++);
    }
  }
  return prefixes;
}

tl::unexpected<Error> damaged(const std::string& path, std::string_view what) {
  return fail(ErrorCode::kMalformed, fmt::format("the kept prefix cache is not used: {}", what), path,
              "delete the file; it is written anew when the server ends");
}

}  // namespace

std::string prefix_identity(const artifact::Artifact& artifact, const RopeTables& ropes,
                            const memory::EmbeddedCache& cache, std::string_view quantization) {
  Digest digest(DigestKind::kSha256);
  add_text(digest, fmt::format("{} {} {} {} {}", kArithmetic, kernels::to_string(kernels::select().isa),
                               to_string(cache.format), cache.block_size, cache.bytes_per_block.value));
  add_text(digest, quantization);
  // The longest request may choose among factors, so the config does not tell them.
  for (const RopeTable* rope : {&ropes.all, ropes.windows ? &*ropes.windows : &ropes.all,
                                ropes.within ? &*ropes.within : &ropes.all}) {
    digest.add(std::as_bytes(std::span(rope->inverse_frequencies)));
    digest.add(bytes_of(rope->attention_factor));
  }
  for (const auto& place : cache.places)
    add_text(digest, fmt::format("{} {}", place.group, place.offset_bytes));
  add_text(digest, dump(artifact.config()));
  for (const auto& tensor : artifact.tensors()) {
    add_text(digest, tensor.name);
    add_text(digest, fmt::format("{} {} {} {}", name(tensor.dtype), fmt::join(tensor.shape, ","),
                                 tensor.offset_bytes, tensor.bytes));
    if (const auto data = artifact.data(tensor)) add_samples(digest, *data);
  }
  for (const auto& file : artifact.files()) {
    if (file.role != artifact::FileRole::kWeights) continue;
    std::error_code unknown;
    const auto written = fs::last_write_time(artifact.path_of(file), unknown);
    add_text(digest, fmt::format("{} {} {}", file.path, file.bytes.value,
                                 unknown ? 0 : written.time_since_epoch().count()));
  }
  return digest.finish();
}

std::string prefix_path(const std::string& folder, const std::string& identity) {
  return (fs::path(folder) / (identity.substr(0, 32) + ".prefixes")).string();
}

Result<std::int64_t> save_prefixes(const std::string& folder, const std::string& identity,
                                   const schedule::Scheduler& scheduler, const KvPool& pool) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error)
    return fail(ErrorCode::kUsage, "the folder for the prefix cache cannot be made: " + error.message(),
                folder, "name another one: --prefix-cache-dir");
  const std::string path = prefix_path(folder, identity);
  remove_old_partials(path);
  const auto prefixes = storable(scheduler.kept_prefixes());
  Writer writer(path);
  writer.add(std::as_bytes(std::span(kMagic)));
  writer.add(std::as_bytes(std::span(identity)));
  writer.add_number(static_cast<std::uint64_t>(prefixes.size()));
  for (const auto& kept : prefixes) {
    writer.add_number(kept.parent);
    writer.add_number(static_cast<std::uint32_t>(kept.key.size()));
    for (const auto block : kept.blocks)
      writer.add_number(static_cast<std::uint8_t>(block != schedule::kNoBlock));
    writer.add(std::as_bytes(std::span(kept.tokens)));
    writer.add(std::as_bytes(std::span(kept.key)));
  }
  for (const auto& kept : prefixes)
    for (const auto block : kept.blocks)
      if (block != schedule::kNoBlock) writer.add(pool.block(block));
  if (const auto reason = writer.put_in_place(path))
    return fail(ErrorCode::kUsage, "the prefix cache cannot be written: " + *reason, path,
                "make room, or name another folder: --prefix-cache-dir");
  return static_cast<std::int64_t>(prefixes.size()) * pool.block_size();
}

Result<std::int64_t> load_prefixes(const std::string& folder, const std::string& identity,
                                   std::int64_t vocab_size, schedule::Scheduler& scheduler,
                                   const KvPool& pool) {
  const std::string path = prefix_path(folder, identity);
  std::error_code unknown;
  if (!fs::exists(path, unknown)) return 0;
  PLIMSOLL_TRY(const MappedFile file, MappedFile::open(path));
  const auto content = file.bytes();
  if (content.size() < kMagic.size() + identity.size() + kDigestBytes)
    return damaged(path, "it is too short");
  const auto body = content.first(content.size() - kDigestBytes);
  const auto digest = content.last(kDigestBytes);
  Reader reader(body);
  const auto begins_with = [&](std::string_view text) {
    return std::memcmp(reader.take(text.size())->data(), text.data(), text.size()) == 0;
  };
  if (!begins_with(kMagic)) return damaged(path, "it is of another version");
  if (!begins_with(identity)) return damaged(path, "it belongs to another model or layout");
  auto prefixes =
      read_table(reader, vocab_size, static_cast<std::size_t>(pool.block_size()), pool.num_groups());
  if (!prefixes) return damaged(path, "its table does not hang together");
  const auto stored = *prefixes;
  const auto block_bytes = static_cast<std::size_t>(pool.bytes_per_block().value);
  std::size_t num_stored = 0;
  for (const auto& kept : stored)
    num_stored += static_cast<std::size_t>(std::ranges::count_if(
        kept.blocks, [](schedule::BlockId block) { return block != schedule::kNoBlock; }));
  if (reader.size() % block_bytes != 0 || reader.size() / block_bytes != num_stored)
    return damaged(path, "its blocks are not as many as its table says");
  // Last, so that a file of the wrong size is not read to its end.
  if (std::memcmp(sha256_hex(body).data(), digest.data(), kDigestBytes) != 0)
    return damaged(path, "its checksum does not agree with its content");
  PLIMSOLL_TRY_VOID(scheduler.restore(*prefixes));
  const auto blocks = *reader.take(reader.size());
  std::int64_t num_tokens = 0;
  for (std::size_t i = 0; i < stored.size(); ++i) {
    bool is_taken = false;
    for (std::size_t group = 0; group < stored[i].blocks.size(); ++group) {
      const auto to = (*prefixes)[i].blocks[group];
      if (to == schedule::kNoBlock) continue;
      const auto from = static_cast<std::size_t>(stored[i].blocks[group]);
      std::ranges::copy(blocks.subspan(from * block_bytes, block_bytes), pool.block(to).begin());
      is_taken = true;
    }
    num_tokens += is_taken ? pool.block_size() : 0;
  }
  if (!file.was_cut()) return num_tokens;
  return fail(ErrorCode::kMalformed, "the kept prefix cache became shorter while it was read", path,
              "start again");
}

}  // namespace plimsoll::engine
