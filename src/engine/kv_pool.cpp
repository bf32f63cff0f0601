// SPDX-License-Identifier: Apache-2.0
#include "engine/kv_pool.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "memory/kv_cache.h"

namespace plimsoll::engine {

Result<KvPool> KvPool::create(const model::ModelSpec& spec, const memory::EmbeddedCache& cache,
                              Blocks num_blocks) {
  KvPool pool;
  pool.format_ = cache.format;
  pool.block_size_ = cache.block_size;
  pool.block_bytes_ = cache.bytes_per_block.value;
  pool.num_groups_ = cache.groups.size();
  for (std::size_t i = 0; i < spec.layers.size(); ++i) {
    LayerLayout layout{.group = cache.places[i].group, .offset_bytes = cache.places[i].offset_bytes};
    PLIMSOLL_TRY(const memory::KeyValueBytes per_token,
                 memory::kv_layer_parts_per_token(spec.layers[i], cache.format, cache.format));
    if (const auto* attention = std::get_if<model::Attention>(&spec.layers[i].mixer)) {
      layout.values_offset_bytes = per_token.keys.value * cache.block_size;
      layout.kv_heads = attention->kv_heads;
      layout.key_bytes = layout.values_offset_bytes / attention->kv_heads;
      layout.value_bytes = per_token.values.value * cache.block_size / attention->kv_heads;
    } else if (std::holds_alternative<model::Latent>(spec.layers[i].mixer)) {
      layout.kv_heads = 1;
      layout.key_bytes = per_token.keys.value * cache.block_size;
    }
    if (const model::State* state = memory::state_of(spec.layers[i])) {
      layout.state_row_bytes = state->state_size * std::int64_t{sizeof(float)};
      layout.channel_bytes = (state->kernel - 1) * std::int64_t{sizeof(float)};
    }
    pool.layers_bytes_ += (per_token.keys + per_token.values).value * cache.block_size;
    pool.layers_.push_back(layout);
  }
  pool.states_ = cache.states;
  const auto size = checked_product(pool.block_bytes_, num_blocks.value);
  if (cache.groups.empty()) return pool;  // an encoder keeps nothing
  if (!size || *size == 0)
    return fail(ErrorCode::kNo, "the KV pool has no room for a single block", "--num-gpu-blocks-override");
  void* data = ::mmap(nullptr, static_cast<std::size_t>(*size), PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (data == MAP_FAILED)
    return fail(ErrorCode::kNo,
                "the system refuses " + as_gib(Bytes(*size)) + " for the KV pool: " + std::strerror(errno),
                "--kv-cache-memory-bytes", "ask for a smaller pool");
  // Huge pages would make 2 MiB resident for the first token and hide what a sequence really costs.
  ::madvise(data, static_cast<std::size_t>(*size), MADV_NOHUGEPAGE);
  pool.data_ = static_cast<std::byte*>(data);
  pool.size_ = static_cast<std::size_t>(*size);
  return pool;
}

KvPool::KvPool(KvPool&& other) noexcept {
  *this = std::move(other);
}

KvPool& KvPool::operator=(KvPool&& other) noexcept {
  std::swap(format_, other.format_);
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  std::swap(block_bytes_, other.block_bytes_);
  std::swap(layers_bytes_, other.layers_bytes_);
  std::swap(block_size_, other.block_size_);
  std::swap(num_groups_, other.num_groups_);
  std::swap(layers_, other.layers_);
  std::swap(states_, other.states_);
  return *this;
}

KvPool::~KvPool() {
  if (data_) ::munmap(data_, size_);
}

std::byte* KvPool::keys(std::int64_t block, int layer, int kv_head) const {
  const LayerLayout& layout = layers_[static_cast<std::size_t>(layer)];
  return data_ + block * block_bytes_ + layout.offset_bytes + kv_head * layout.key_bytes;
}

std::byte* KvPool::values(std::int64_t block, int layer, int kv_head) const {
  const LayerLayout& layout = layers_[static_cast<std::size_t>(layer)];
  return data_ + block * block_bytes_ + layout.offset_bytes + layout.values_offset_bytes +
         kv_head * layout.value_bytes;
}

void KvPool::copy(std::int64_t from, std::int64_t to) const {
  std::ranges::copy(block(from), block(to).begin());
}

void KvPool::touch_token(int layer, std::int64_t block, std::int64_t slot) const {
  const LayerLayout& layout = layers_[static_cast<std::size_t>(layer)];
  const std::int64_t key = layout.key_bytes / block_size_, value = layout.value_bytes / block_size_;
  for (int head = 0; head < layout.kv_heads; ++head) {
    std::memset(keys(block, layer, head) + slot * key, 0, static_cast<std::size_t>(key));
    std::memset(values(block, layer, head) + slot * value, 0, static_cast<std::size_t>(value));
  }
}

void KvPool::touch_state(int layer, std::span<const std::int64_t> blocks) const {
  const LayerLayout& layout = layers_[static_cast<std::size_t>(layer)];
  const auto touch = [&](const std::vector<memory::StateRows>& places, std::int64_t row_bytes) {
    for (const memory::StateRows& rows : places)
      std::memset(state(blocks[static_cast<std::size_t>(rows.group)], rows), 0,
                  static_cast<std::size_t>(rows.count * row_bytes));
  };
  touch(state_place(layer).recurrent, layout.state_row_bytes);
  touch(state_place(layer).convolution, layout.channel_bytes);
}

Bytes KvPool::resident_bytes() const {
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  constexpr std::size_t kPagesAtOnce = 1 << 16;
  std::vector<unsigned char> present(kPagesAtOnce);
  std::int64_t resident_pages = 0;
  for (std::size_t at = 0; at < size_; at += kPagesAtOnce * page) {
    const std::size_t length = std::min(size_ - at, kPagesAtOnce * page);
    if (::mincore(data_ + at, length, present.data()) != 0) continue;
    for (std::size_t i = 0; i < (length + page - 1) / page; ++i) resident_pages += present[i] & 1;
  }
  return Bytes(resident_pages * static_cast<std::int64_t>(page));
}

}  // namespace plimsoll::engine
