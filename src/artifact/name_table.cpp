// SPDX-License-Identifier: Apache-2.0
#include "artifact/name_table.h"

#include <bit>
#include <random>

#include "base/large_pages.h"

namespace plimsoll::artifact {

std::uint64_t name_seed() {
  std::random_device device;
  return std::uint64_t{device()} << 32 | device();
}

void NameTable::reset(std::size_t count) {
  const std::size_t size = std::bit_ceil(2 * count + 1);
  PLIMSOLL_CHECK(size <= std::size_t{1} << 31, "more names than a table of 32-bit slots can hold");
  slots_.clear();
  if (slots_.capacity() < size) {
    slots_ = {};
    slots_.reserve(size);
    use_large_pages(slots_.data(), size * sizeof(std::uint32_t));
  }
  slots_.assign(size, kFree);
  mask_ = static_cast<std::uint32_t>(size - 1);
  num_names_ = 0;
}

}  // namespace plimsoll::artifact
