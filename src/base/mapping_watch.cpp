// SPDX-License-Identifier: Apache-2.0
#include "base/mapping_watch.h"

#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>

namespace plimsoll {
namespace {

constexpr int kMaxWatched = 4096;  // models have some 200 files

// Looked through inside a signal handler: lock-free, and never moved.
struct Watched {
  std::atomic<bool> is_taken = false;
  std::atomic<std::uintptr_t> begin = 0, end = 0;  // 0: nothing to look at (yet, or any more)
  std::atomic<bool> was_cut = false;
};
std::array<Watched, kMaxWatched> table;
std::atomic<int> num_used = 0;  // entries from here on were never taken
std::atomic<bool> any_was_cut = false;
std::atomic<std::uintptr_t> page_bytes = 4096;

static_assert(std::atomic<std::uintptr_t>::is_always_lock_free && std::atomic<bool>::is_always_lock_free);

// Puts zeros from the page of `address` to the end of its mapping. Only what a signal handler may call.
bool put_zeros(std::uintptr_t address) {
  const int used = num_used.load();
  for (int i = 0; i < used; ++i) {
    Watched& mapping = table[static_cast<std::size_t>(i)];
    const std::uintptr_t begin = mapping.begin.load(), end = mapping.end.load();
    if (address < begin || address >= end) continue;
    const std::uintptr_t page = address / page_bytes.load() * page_bytes.load();
    void* placed = ::mmap(reinterpret_cast<void*>(page), end - page, PROT_READ,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0);
    if (placed == MAP_FAILED) return false;
    mapping.was_cut.store(true);
    any_was_cut.store(true);
    return true;
  }
  return false;
}

struct sigaction before{};  // what SIGBUS did when the first file was mapped

// As if nobody had come between.
void pass_on(int signal, siginfo_t* info, void* context) {
  const bool was_sent = info->si_code <= 0;  // by kill or raise: no read is tried again
  if ((before.sa_flags & SA_SIGINFO) != 0) return before.sa_sigaction(signal, info, context);
  if (before.sa_handler == SIG_IGN && was_sent) return;
  if (before.sa_handler != SIG_IGN && before.sa_handler != SIG_DFL) return before.sa_handler(signal);
  struct sigaction usual{};
  usual.sa_handler = SIG_DFL;
  ::sigaction(signal, &usual, nullptr);
  if (was_sent) ::raise(signal);  // a read that failed is tried again by itself
}

void on_bus_error(int signal, siginfo_t* info, void* context) {
  // Behind the end of the file, or what its disk cannot give. A signal that was sent carries no address.
  if (info->si_code == BUS_ADRERR && put_zeros(reinterpret_cast<std::uintptr_t>(info->si_addr))) return;
  pass_on(signal, info, context);
}

void install_handler() {
  page_bytes.store(static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE)));
  struct sigaction ours{};
  ours.sa_sigaction = on_bus_error;
  ours.sa_flags = SA_SIGINFO | SA_RESTART;
  ::sigaction(SIGBUS, nullptr, &before);  // whole before our handler can run
  ::sigaction(SIGBUS, &ours, nullptr);
}

}  // namespace

int watch_mapping(const void* data, std::size_t size) {
  static std::once_flag once;
  std::call_once(once, install_handler);
  for (int i = 0; i < kMaxWatched; ++i) {
    Watched& mapping = table[static_cast<std::size_t>(i)];
    if (mapping.is_taken.load() || mapping.is_taken.exchange(true)) continue;
    mapping.was_cut.store(false);
    mapping.begin.store(reinterpret_cast<std::uintptr_t>(data));
    mapping.end.store(reinterpret_cast<std::uintptr_t>(data) + size);
    for (int used = num_used.load(); used <= i && !num_used.compare_exchange_weak(used, i + 1);) {
    }
    return i;
  }
  return -1;
}

void unwatch_mapping(int number) {
  if (number < 0) return;
  Watched& mapping = table[static_cast<std::size_t>(number)];
  mapping.end.store(0);
  mapping.begin.store(0);
  mapping.is_taken.store(false);
}

bool was_mapping_cut(int number) {
  return number >= 0 && table[static_cast<std::size_t>(number)].was_cut.load();
}

bool was_any_mapping_cut() {
  return any_was_cut.load();
}

}  // namespace plimsoll
