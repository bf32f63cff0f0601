// SPDX-License-Identifier: Apache-2.0
// vLLM's result of a pooling task. Source: benchmarks/serve.py of vLLM 0.32, the result of an
// EmbedBenchmarkMetrics.
#include <algorithm>
#include <iterator>

#include "bench/backend.h"

namespace plimsoll::bench {
namespace {

constexpr std::string_view kOfGeneration[] = {"total_output_tokens",
                                              "request_goodput",
                                              "output_throughput",
                                              "output_lens",
                                              "ttfts",
                                              "itls",
                                              "generated_texts",
                                              "start_times",
                                              "rtfx",
                                              "max_output_tokens_per_s",
                                              "max_concurrent_requests"};

}  // namespace

void to_pooling_keys(Json& result, const Summary& summary) {
  std::erase_if(result.mutable_members(), [](const Json::Member& member) {
    return std::find(std::begin(kOfGeneration), std::end(kOfGeneration), member.first) !=
           std::end(kOfGeneration);
  });
  result.set("total_input_sequences", summary.completed);
  result.set("input_sequence_throughput", summary.request_rate_done);
}

}  // namespace plimsoll::bench
