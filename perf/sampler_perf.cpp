// SPDX-License-Identifier: Apache-2.0
// How long does one draw take on a vocabulary of 151,936 tokens? Per kind of sampling and shape of the
// logits: microseconds, and the share of a step of 10 ms. "sharp": a handful of tokens holds nearly all, as a
// trained model has it; "wide": a normal distribution of spread 3, whose likeliest token has 3 %; "flat": all
// but equal, the most that a cut can have to look at.
#include <benchmark/benchmark.h>

#include <random>
#include <string>
#include <vector>

#include "engine/sampler.h"

namespace plimsoll::engine {
namespace {

constexpr std::size_t kVocab = 151'936;

std::vector<float> random_logits(float spread, float lead) {
  std::mt19937 random(1);
  std::normal_distribution<float> normal(0, spread);
  std::vector<float> logits(kVocab);
  for (float& logit : logits) logit = normal(random);
  for (std::size_t i = 0; i < 8; ++i) logits[i * 18'000 + 77] += lead;
  return logits;
}

void draw(benchmark::State& state, const SamplingParams& params, float spread, float lead) {
  const auto logits = random_logits(spread, lead);
  std::vector<TokenId> prompt(1000);
  for (std::size_t i = 0; i < prompt.size(); ++i) prompt[i] = static_cast<TokenId>(i * 151 % kVocab);
  Sampler sampler(params, prompt);
  SamplerBuffers buffers;
  std::int64_t generated = 0;
  for (auto _ : state) benchmark::DoNotOptimize(sampler.choose(logits, generated++, buffers));
  state.counters["% of 10 ms"] =
      benchmark::Counter(1e-4, benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}

void logprobs(benchmark::State& state) {
  const auto logits = random_logits(3, 0);
  for (auto _ : state) benchmark::DoNotOptimize(token_logprob(logits, 5, 20));
}

void add(const std::string& name, const SamplingParams& params) {
  struct Shape {
    const char* name;
    float spread, lead;
  };
  for (const Shape& shape : {Shape{"sharp", 2, 16}, Shape{"wide", 3, 0}, Shape{"flat", 0.1f, 0}})
    benchmark::RegisterBenchmark((name + "/" + shape.name).c_str(), draw, params, shape.spread, shape.lead)
        ->Unit(benchmark::kMicrosecond);
}

void register_all() {
  SamplingParams plain;
  plain.seed = 1;
  auto with = [&](auto change) {
    SamplingParams params = plain;
    change(params);
    return params;
  };
  const auto penalize = [](SamplingParams& p) {
    p.repetition_penalty = 1.1;
    p.presence_penalty = p.frequency_penalty = 0.5;
  };
  add("greedy", with([](auto& p) { p.temperature = 0; }));
  add("temperature", plain);
  add("top_k 50", with([](auto& p) { p.top_k = 50; }));
  add("top_p 0.95", with([](auto& p) { p.top_p = 0.95; }));
  add("min_p 0.05", with([](auto& p) { p.min_p = 0.05; }));
  add("typical_p 0.95", with([](auto& p) { p.typical_p = 0.95; }));
  add("greedy, all penalties", with([&](auto& p) {
        p.temperature = 0;
        penalize(p);
      }));
  add("top_k 50, top_p 0.95, all penalties", with([&](auto& p) {
        p.top_k = 50;
        p.top_p = 0.95;
        penalize(p);
      }));
  benchmark::RegisterBenchmark("logprobs 20", logprobs)->Unit(benchmark::kMicrosecond);
}

}  // namespace
}  // namespace plimsoll::engine

int main(int argc, char** argv) {
  plimsoll::engine::register_all();
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}
