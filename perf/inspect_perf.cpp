// SPDX-License-Identifier: Apache-2.0
// How long does it take to open a model folder and to inspect it, within one process and warm?
// usage: plimsoll_inspect_perf MODEL [PASSES]
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "artifact/artifact.h"
#include "inspect/inspect.h"

namespace {

void report(const char* what, int passes, const std::function<void()>& work) {
  std::vector<double> times;
  for (int i = 0; i <= passes; ++i) {
    const auto start = std::chrono::steady_clock::now();
    work();
    const std::chrono::duration<double, std::milli> taken = std::chrono::steady_clock::now() - start;
    if (i > 0) times.push_back(taken.count());  // the first one warms up
  }
  std::sort(times.begin(), times.end());
  std::printf("%-8s least %7.2f ms, median %7.2f, most %7.2f over %d passes\n", what, times.front(),
              times[times.size() / 2], times.back(), passes);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: %s MODEL [PASSES]\n", argv[0]);
    return 2;
  }
  const std::string model = argv[1];
  const int passes = argc > 2 ? std::max(1, std::atoi(argv[2])) : 20;
  const auto artifact = plimsoll::artifact::open(model);
  if (!artifact) {
    std::fprintf(stderr, "%s\n", artifact.error().describe().c_str());
    return 1;
  }
  std::printf("%s: %zu tensors in %zu files; %u threads here, g++ %d\n", model.c_str(),
              (*artifact)->tensors().size(), (*artifact)->files().size(), std::thread::hardware_concurrency(),
              __GNUC__);
  report("open", passes, [&] { (void)plimsoll::artifact::open(model).has_value(); });
  report("inspect", passes, [&] { (void)plimsoll::inspect::inspect(model).has_value(); });
  return 0;
}
