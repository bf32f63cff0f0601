// SPDX-License-Identifier: Apache-2.0
#include "engine/prefix_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <optional>
#include <span>

#include "base/hash.h"
#include "base/mapped_file.h"
#include "engine/kept_file.h"
#include "kernels/kernels.h"

namespace plimsoll::engine {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kMagic = "plimsoll prefixes 1\n";
/// Rises when a change of the engine changes the bits that it writes into the pool.
constexpr int kArithmetic = 2;
constexpr std::size_t kDigestBytes = 64;          // hex digits at the end
constexpr std::size_t kMostPrefixes = 1 << 20;    // of a file; a table is held in memory
constexpr std::uint32_t kMostKeyBytes = 1 << 20;  // of one block's salt and contents

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
    digest.add(std::as_bytes(std::span(&rope->attention_factor, 1)));
  }
  for (const auto& place : cache.places)
    add_text(digest, fmt::format("{} {}", place.group, place.offset_bytes));
  add_model(digest, artifact);
  return digest.finish();
}

std::string prefix_path(const std::string& folder, const std::string& identity) {
  return (fs::path(folder) / (identity.substr(0, 32) + ".prefixes")).string();
}

Result<std::int64_t> save_prefixes(const std::string& folder, const std::string& identity,
                                   const schedule::Scheduler& scheduler, const KvPool& pool) {
  const std::string path = prefix_path(folder, identity);
  PLIMSOLL_TRY_VOID(make_room_for(path, "--prefix-cache-dir"));
  const auto prefixes = storable(scheduler.kept_prefixes());
  KeptFileWriter writer(path);
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
