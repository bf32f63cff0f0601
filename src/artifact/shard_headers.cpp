// SPDX-License-Identifier: Apache-2.0
#include "artifact/shard_headers.h"

#include <mutex>
#include <optional>
#include <utility>

#include "base/thread_pool.h"

namespace plimsoll::artifact {
namespace {

// A thread costs some 50 us to start, a shard's header about as much to read.
constexpr std::size_t kShardsWorthAThread = 8;

// The files that nobody has taken yet. One thread takes them from the front, so that its list is the
// beginning of the whole and stays where it is; the other from the back.
class Remaining {
 public:
  explicit Remaining(std::size_t count) : end_(count) {}

  std::optional<std::size_t> take(bool from_front) {
    const std::lock_guard lock(mutex_);
    if (begin_ == end_) return std::nullopt;
    return from_front ? begin_++ : --end_;
  }

 private:
  std::mutex mutex_;
  std::size_t begin_ = 0, end_;
};

void read_shard(const std::string& folder, HeaderListReader& reader, ShardHeaders::Shard& shard) {
  auto mapped = MappedFile::open_beginning(folder + "/" + shard.name, header_bytes);
  if (!mapped) {
    shard.findings.push_back({"FILE_UNREADABLE", FindingLevel::kError, FindingKind::kMalformed, shard.name,
                              mapped.error().message, "check the file's permissions"});
    return;
  }
  shard.mapping = std::move(*mapped);
  shard.is_mapped = true;
  shard.first = reader.num_tensors();
  shard.is_readable = reader.read({shard.mapping.bytes(), shard.name,
                                   static_cast<std::int64_t>(shard.mapping.file_bytes()), &shard.mapping},
                                  shard.findings);
  shard.count = reader.num_tensors() - shard.first;
}

}  // namespace

ShardHeaders read_shard_headers(const std::string& folder, const std::vector<std::string>& names,
                                const std::function<void()>& beside) {
  ShardHeaders result;
  result.shards.resize(names.size());
  for (std::size_t i = 0; i < names.size(); ++i) result.shards[i].name = names[i];
  Remaining remaining(names.size());
  const int threads = names.size() < kShardsWorthAThread ? 1 : 2;
  ThreadPool(threads).run(threads, [&](std::int64_t worker, int) {
    const bool is_first = worker == 0;
    if (beside && (!is_first || threads == 1)) beside();
    HeaderListReader reader(is_first ? names.size() : names.size() / 2 + 1);
    while (const auto number = remaining.take(is_first)) {
      result.shards[*number].list = static_cast<std::size_t>(worker);
      read_shard(folder, reader, result.shards[*number]);
    }
    result.lists[static_cast<std::size_t>(worker)] = reader.take();
  });
  return result;
}

}  // namespace plimsoll::artifact
