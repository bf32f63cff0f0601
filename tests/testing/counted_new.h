// SPDX-License-Identifier: Apache-2.0
// How often was memory asked for? Replaces the program's operator new by one that counts: for one file of a
// test program only, the one that asks.
#pragma once

#include <cstdlib>
#include <new>

namespace plimsoll::testing {
inline std::size_t num_allocations = 0;
}

__attribute__((noinline)) void* operator new(std::size_t size) {
  ++plimsoll::testing::num_allocations;
  if (void* memory = std::malloc(size > 0 ? size : 1)) return memory;
  throw std::bad_alloc();
}
__attribute__((noinline)) void operator delete(void* memory) noexcept {
  std::free(memory);
}
__attribute__((noinline)) void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}
