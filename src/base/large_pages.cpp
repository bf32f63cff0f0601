// SPDX-License-Identifier: Apache-2.0
#include "base/large_pages.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>

namespace plimsoll {
namespace {

constexpr std::size_t kLargePage = std::size_t{2} << 20;  // on x86-64, and on arm64 with pages of 4 KiB

}  // namespace

void use_large_pages(void* data, std::size_t bytes) {
  if (bytes < kLargePage) return;
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto begin = (reinterpret_cast<std::uintptr_t>(data) + page - 1) / page * page;
  const auto end = (reinterpret_cast<std::uintptr_t>(data) + bytes) / page * page;
  if (begin < end) (void)::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_HUGEPAGE);
}

}  // namespace plimsoll
