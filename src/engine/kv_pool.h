// SPDX-License-Identifier: Apache-2.0
// Where do keys and values lie? One reserved region cut into blocks of block_size tokens of all layers; the
// system gives it memory page by page as tokens are written, so what is resident is what is stored. Owns its
// mapping.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/dtype.h"
#include "base/result.h"
#include "base/units.h"
#include "model/model.h"

namespace plimsoll::engine {

class KvPool {
 public:
  /// Reserves num_blocks * block_size * kv_bytes_per_token of address space; nothing is touched.
  /// Errors: kNo when the system refuses the reservation.
  static Result<KvPool> create(const model::ModelSpec& spec, DType cache_dtype, Blocks num_blocks,
                               int block_size);

  KvPool() = default;
  KvPool(KvPool&& other) noexcept;
  KvPool& operator=(KvPool&& other) noexcept;
  ~KvPool();

  DType dtype() const { return dtype_; }
  Bytes bytes() const { return Bytes(static_cast<std::int64_t>(size_)); }
  Bytes bytes_per_block() const { return Bytes(block_bytes_); }

  /// First key of one head of one layer in a block; keys of the block's tokens follow each other:
  /// [block_size, head_dim].
  std::byte* keys(std::int64_t block, int layer, int kv_head) const;
  std::byte* values(std::int64_t block, int layer, int kv_head) const;

  /// Writes zeros where one token of a sequence has its keys and values, in all layers. `slot`: within the
  /// block.
  void touch(std::int64_t block, std::int64_t slot) const;

  /// Bytes of the region that have pages behind them, as the kernel's page tables say (mincore).
  Bytes resident_bytes() const;

 private:
  struct LayerLayout {
    std::int64_t offset_bytes = 0;  // from the start of a block
    int kv_heads = 0;
    std::int64_t head_bytes = 0;           // block_size * head_dim elements
    std::int64_t values_offset_bytes = 0;  // from the layer's keys to its values
  };

  DType dtype_ = DType::kBF16;
  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
  std::int64_t block_bytes_ = 0;
  int block_size_ = 0;
  std::vector<LayerLayout> layers_;
};

}  // namespace plimsoll::engine
