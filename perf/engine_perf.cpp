// SPDX-License-Identifier: Apache-2.0
// How fast is the engine without a server? One model, greedy, random prompts: a prompt alone, one stream, and
// several streams at once, each as tokens per second with the spread of the rounds. No client, no HTTP.
// Usage: plimsoll_engine_perf MODEL [THREADS [ROUNDS [BEGINNING OF A CASE'S NAME]]]
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <random>
#include <set>
#include <string_view>
#include <vector>

#include "artifact/artifact.h"
#include "base/machine.h"
#include "engine/engine.h"
#include "kernels/kernels.h"
#include "model/model.h"

namespace plimsoll::engine {
namespace {

using Clock = std::chrono::steady_clock;

struct Case {
  const char* name;
  int streams;
  int prompt_tokens;
  int new_tokens;
};
constexpr Case kCases[] = {
    {"prompt of 512", 1, 512, 1},       {"prompt of 2,048", 1, 2048, 1},
    {"1 stream at 128", 1, 128, 64},    {"8 streams at 128", 8, 128, 64},
    {"16 streams at 128", 16, 128, 64}, {"32 streams at 128", 32, 128, 64},
    {"1 stream at 4,096", 1, 4096, 16},
};

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

struct Speed {
  double prompt = 0, decode = 0, total = 0;  // tokens per second
};

Speed run(Engine& engine, const Case& of, std::mt19937& random) {
  for (int i = 0; i < of.streams; ++i) {
    Submission submission;
    for (int k = 0; k < of.prompt_tokens; ++k)
      submission.prompt.push_back(
          static_cast<TokenId>(random() % static_cast<std::uint64_t>(engine.vocab_size())));
    SamplingParams params;
    params.max_tokens = of.new_tokens;
    params.temperature = 0;
    submission.choices = {params};
    if (!engine.add(std::move(submission))) std::abort();
  }
  const auto begin = Clock::now();
  std::set<RequestId> begun;
  int tokens = 0, before = 0;
  double prompts_s = 0;
  while (engine.has_work()) {
    for (const Output& output : engine.step()) {
      tokens += static_cast<int>(output.tokens.size());
      begun.insert(output.request);
    }
    if (before == 0 && std::ssize(begun) == of.streams) {  // from here on all decode
      before = tokens;
      prompts_s = seconds_since(begin);
    }
  }
  const double all_s = seconds_since(begin);
  return {of.streams * of.prompt_tokens / prompts_s, (tokens - before) / std::max(all_s - prompts_s, 1e-9),
          tokens / all_s};
}

std::string spread(std::vector<double> values) {
  std::ranges::sort(values);
  return fmt::format("{:8.1f} ({:.1f} to {:.1f})", values[values.size() / 2], values.front(), values.back());
}

int main_of(int argc, char** argv) {
  if (argc < 2) return 2;
  auto artifact = artifact::open(argv[1]);
  if (!artifact) return 3;
  auto spec = model::read_spec(**artifact);
  if (!spec) return 3;
  EngineOptions options;
  options.threads = argc > 2 ? std::atoi(argv[2]) : 0;
  options.enable_prefix_caching = false;
  options.max_num_seqs = 32;
  const auto begin = Clock::now();
  auto engine = Engine::load(*artifact, *spec, options);
  if (!engine) {
    fmt::print(stderr, "{}\n", engine.error().message);
    return 3;
  }
  fmt::print("loaded in {:.3f} s, {}\n", seconds_since(begin), to_string(kernels::select().isa));
  std::mt19937 random(1);
  const int rounds = argc > 3 ? std::atoi(argv[3]) : 3;
  run(**engine, kCases[2], random);  // pages and caches
  const std::string_view wanted = argc > 4 ? argv[4] : "";
  for (const Case& of : kCases) {
    if (!std::string_view(of.name).starts_with(wanted)) continue;
    std::vector<double> prompt, decode, total;
    for (int round = 0; round < rounds; ++round) {
      const Speed speed = run(**engine, of, random);
      prompt.push_back(speed.prompt);
      decode.push_back(speed.decode);
      total.push_back(speed.total);
    }
    fmt::print("{:18} prompt {}  decode {}  all {}\n", of.name, spread(prompt),
               of.new_tokens > 1 ? spread(decode) : std::string("-"), spread(total));
    std::fflush(stdout);
  }
  return 0;
}

}  // namespace
}  // namespace plimsoll::engine

int main(int argc, char** argv) {
  return plimsoll::engine::main_of(argc, argv);
}
