// SPDX-License-Identifier: Apache-2.0
// What does one streamed token cost the load client's reader? Per format: microseconds per event, framing,
// JSON and bookkeeping together, with events as the servers write them, one per read.
#include <benchmark/benchmark.h>

#include <string>
#include <string_view>

#include "base/json.h"
#include "bench/reply.h"

namespace plimsoll::bench {
namespace {

constexpr int kEvents = 1000;

void read_events(benchmark::State& state, ReplyFormat format, const std::string& event) {
  for (auto _ : state) {
    RequestRecord record;
    ReplyReader reader(record, format);
    reader.head(200, "", 0);
    for (int i = 0; i < kEvents; ++i) reader.body(event, i);
    if (std::ssize(record.chunks) != kEvents) state.SkipWithError("the events were not read");
    benchmark::DoNotOptimize(record);
  }
  state.counters["bytes"] = static_cast<double>(event.size());
  state.counters["per event"] = benchmark::Counter(
      kEvents, benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}

/// What the tree of the same event costs, for comparison.
void parse_tree(benchmark::State& state, const std::string& text) {
  for (auto _ : state) benchmark::DoNotOptimize(parse_json(text, "event"));
}

std::string sse(std::string_view data) {
  return "data: " + std::string(data) + "\n\n";
}

void register_all() {
  const std::string completion =
      R"({"id":"cmpl-0123456789abcdef0123456789abcdef","object":"text_completion","created":1700000000,)"
      R"("model":"org/model-name","choices":[{"index":0,"text":" word","logprobs":null,"finish_reason":null,)"
      R"("stop_reason":null}],"usage":null})";
  const std::string chat =
      R"({"id":"chatcmpl-0123456789abcdef0123456789abcdef","object":"chat.completion.chunk",)"
      R"("created":1700000000,"model":"org/model-name","choices":[{"index":0,"delta":{"content":" word"},)"
      R"("logprobs":null,"finish_reason":null,"token_ids":null}]})";
  const std::string ollama =
      R"({"model":"name","created_at":"2025-01-01T00:00:00.000000000Z","message":{"role":"assistant",)"
      R"("content":" word"},"done":false})"
      "\n";
  const std::string tgi = R"({"index":5,"token":{"id":345,"text":" word","logprob":-0.25,"special":false},)"
                          R"("generated_text":null,"details":null})";
  benchmark::RegisterBenchmark("openai", read_events, ReplyFormat::kOpenai, sse(completion));
  benchmark::RegisterBenchmark("openai-chat", read_events, ReplyFormat::kOpenai, sse(chat));
  benchmark::RegisterBenchmark("ollama", read_events, ReplyFormat::kOllama, ollama);
  benchmark::RegisterBenchmark("tgi", read_events, ReplyFormat::kTgi, sse(tgi));
  benchmark::RegisterBenchmark("the tree alone, openai", parse_tree, completion);
}

}  // namespace
}  // namespace plimsoll::bench

int main(int argc, char** argv) {
  plimsoll::bench::register_all();
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}
