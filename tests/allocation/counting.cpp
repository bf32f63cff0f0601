// SPDX-License-Identifier: Apache-2.0
#include "tests/allocation/counting.h"

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <new>

namespace plimsoll::testing {
namespace {

std::atomic<std::int64_t> calls{0};

void* allocate(std::size_t size, std::size_t alignment) noexcept {
  calls.fetch_add(1, std::memory_order_relaxed);
  if (size == 0) size = 1;
  if (alignment <= alignof(std::max_align_t)) return std::malloc(size);
  return std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
}

void* allocate_or_throw(std::size_t size, std::size_t alignment) {
  if (void* memory = allocate(size, alignment)) return memory;
  throw std::bad_alloc();
}

}  // namespace

std::int64_t num_allocations() {
  return calls.load(std::memory_order_relaxed);
}

}  // namespace plimsoll::testing

// The other forms of new and delete come down to these.
void* operator new(std::size_t size) {
  return plimsoll::testing::allocate_or_throw(size, 1);
}
void* operator new(std::size_t size, std::align_val_t alignment) {
  return plimsoll::testing::allocate_or_throw(size, static_cast<std::size_t>(alignment));
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::align_val_t) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept {
  std::free(memory);
}
