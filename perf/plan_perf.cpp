// SPDX-License-Identifier: Apache-2.0
// How long does one plan take, and a search through some 10,000 layouts? Within one process and warm; models
// of the catalogue. usage: plimsoll_plan_perf [PASSES]
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string>
#include <thread>
#include <vector>

#include "plan/plan.h"

namespace {

using namespace plimsoll;

// Wall time, and processor time, which other programs do not stretch; of the passes the least and the median.
void report(const std::string& what, std::int64_t layouts, int passes, const plan::Request& request) {
  std::vector<double> wall, busy;
  for (int i = 0; i <= passes; ++i) {
    const auto start = std::chrono::steady_clock::now();
    const std::clock_t begun = std::clock();
    (void)plan::make_plan(request).has_value();
    const double used = 1000.0 * static_cast<double>(std::clock() - begun) / CLOCKS_PER_SEC;
    const std::chrono::duration<double, std::milli> taken = std::chrono::steady_clock::now() - start;
    if (i == 0) continue;  // the first one warms up
    wall.push_back(taken.count());
    busy.push_back(used);
  }
  std::sort(wall.begin(), wall.end());
  std::sort(busy.begin(), busy.end());
  const std::size_t middle = wall.size() / 2;
  std::printf(
      "%-35s %6lld layout%s processor %9.3f ms (median %9.3f), wall %9.3f (median %9.3f); %7.2f us each\n",
      what.c_str(), static_cast<long long>(layouts), layouts == 1 ? " " : "s", busy.front(), busy[middle],
      wall.front(), wall[middle], 1000 * busy[middle] / static_cast<double>(layouts));
}

}  // namespace

int main(int argc, char** argv) {
  const int passes = argc > 1 ? std::max(1, std::atoi(argv[1])) : 9;
  std::printf("%u threads here, one used; g++ %d\n", std::thread::hardware_concurrency(), __GNUC__);
  for (const char* id : {"meta-llama/Llama-3.1-8B", "meta-llama/Llama-3.1-70B", "Qwen/Qwen3-235B-A22B",
                         "google/gemma-3-27b-it", "deepseek-ai/DeepSeek-V3"}) {
    const auto* entry = facts::find_catalogue(id);
    auto model = entry ? plan::catalogue_model(*entry) : Result<plan::Model>(plan::Model());
    const auto engine = facts::parse_engine("vllm");
    const auto target = plan::parse_target("H200:8");
    if (!entry || !model || !engine || !target) {
      std::fprintf(stderr, "%s is not in the catalogue\n", id);
      return 1;
    }
    plan::Request request;
    request.engine = *engine;
    request.models.push_back(std::move(*model));
    request.settings.max_model_len = 32'768;
    request.targets = {*target};
    report(std::string("plan   ") + id, 1, passes, request);
    request.targets = plan::catalogue_targets();
    request.is_search = true;
    const auto found = plan::make_plan(request);
    if (found) report(std::string("search ") + id, found->search->num_layouts, passes, request);
  }
  return 0;
}
