// SPDX-License-Identifier: Apache-2.0
// Where do keys and values lie? One reserved region cut into equal blocks, each of block_size tokens of one
// cache group's layers; the system gives it memory page by page as tokens are written, so what is resident is
// what is stored. Owns its mapping.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/dtype.h"
#include "base/result.h"
#include "base/units.h"
#include "memory/embedded_cache.h"
#include "model/model.h"

namespace plimsoll::engine {

class KvPool {
 public:
  /// Reserves num_blocks * bytes_per_block of address space; nothing is touched.
  /// Errors: kNo when the system refuses the reservation.
  static Result<KvPool> create(const model::ModelSpec& spec, const memory::EmbeddedCache& cache,
                               Blocks num_blocks);

  KvPool() = default;
  KvPool(KvPool&& other) noexcept;
  KvPool& operator=(KvPool&& other) noexcept;
  ~KvPool();

  const memory::CacheFormat& format() const { return format_; }
  int block_size() const { return block_size_; }  // tokens
  std::size_t num_groups() const { return num_groups_; }
  Bytes bytes_per_block() const { return Bytes(block_bytes_); }
  Bytes bytes() const { return Bytes(static_cast<std::int64_t>(size_)); }
  /// Of all layers, before any window has slid.
  Bytes bytes_per_token() const { return Bytes(layers_bytes_ / block_size_); }

  /// In whose block table a layer's blocks are.
  int group_of(int layer) const { return layers_[static_cast<std::size_t>(layer)].group; }
  /// First key of one head of one layer in a block of the layer's group; keys of the block's tokens follow
  /// each other: [block_size, head_dim]. A latent layer has one head, and no values: [block_size, width].
  /// Where the format has a scale, it stands before each vector.
  std::byte* keys(std::int64_t block, int layer, int kv_head) const;
  std::byte* values(std::int64_t block, int layer, int kv_head) const;

  /// Rows of a state in the block that their group has for the sequence.
  float* state(std::int64_t block, const memory::StateRows& rows) const {
    return reinterpret_cast<float*>(data_ + block * block_bytes_ + rows.offset_bytes);
  }
  /// Where a layer's state lies; empty without one.
  const memory::StatePlace& state_place(int layer) const { return states_[static_cast<std::size_t>(layer)]; }

  std::span<std::byte> block(std::int64_t block) const {
    return {data_ + block * block_bytes_, static_cast<std::size_t>(block_bytes_)};
  }
  /// A whole block, whatever its group keeps in it.
  void copy(std::int64_t from, std::int64_t to) const;
  /// Writes zeros where one token has its keys and values of a layer. `slot`: within the block.
  void touch_token(int layer, std::int64_t block, std::int64_t slot) const;
  /// Writes zeros where a sequence has its state of a layer. `blocks`: [groups], the sequence's in each.
  void touch_state(int layer, std::span<const std::int64_t> blocks) const;

  /// Bytes of the region that have pages behind them, as the kernel's page tables say (mincore).
  Bytes resident_bytes() const;

 private:
  struct LayerLayout {
    int group = 0;
    std::int64_t offset_bytes = 0;  // from the start of a block
    int kv_heads = 0;
    std::int64_t key_bytes = 0;            // of one head: block_size vectors of head_dim elements
    std::int64_t value_bytes = 0;          // block_size vectors of value_dim
    std::int64_t values_offset_bytes = 0;  // from the layer's keys to its values
    std::int64_t state_row_bytes = 0;      // of the recurrence
    std::int64_t channel_bytes = 0;        // of the convolution
  };

  memory::CacheFormat format_ = DType::kBF16;
  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
  std::int64_t block_bytes_ = 0;
  std::int64_t layers_bytes_ = 0;  // of block_size tokens in all layers, without what groups leave unused
  int block_size_ = 0;
  std::size_t num_groups_ = 0;
  std::vector<LayerLayout> layers_;
  std::vector<memory::StatePlace> states_;  // [layers]
};

}  // namespace plimsoll::engine
