// SPDX-License-Identifier: Apache-2.0
// How long does one step of the schedule take? 256 sequences decode and 1,000 wait; each step is planned,
// completed, and every sequence gets a token. Beside it a copy of the same block tables, the least that
// moving them to an engine would cost on this machine.
#include <benchmark/benchmark.h>

#include <cstring>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "schedule/schedule.h"

namespace plimsoll::schedule {
namespace {

constexpr int kRunning = 256, kWaiting = 1000, kPrompt = 512, kAnswer = 4096, kLongPrompt = 32'768;
constexpr SequenceId kLong = 1'000'000;

enum class Setting { kGrowing, kHybrid, kBlockedHead };

Options options_for(Setting setting) {
  Options options;
  options.max_num_seqs = setting == Setting::kBlockedHead ? 2 * kRunning : kRunning;
  options.max_num_batched_tokens = 2048;
  if (setting == Setting::kHybrid) options.groups = {GrowingCache{}, WindowedCache{1024}, StateCache{}};
  const std::int64_t per_sequence = (kPrompt + kAnswer) / options.block_size + 1;
  options.num_blocks = Blocks(kRunning * per_sequence * static_cast<std::int64_t>(options.groups.size()));
  return options;
}

Request request(SequenceId id, int prompt_tokens, int answer_tokens) {
  Request made;
  made.id = id;
  made.prompt.resize(static_cast<std::size_t>(prompt_tokens));
  std::iota(made.prompt.begin(), made.prompt.end(), static_cast<TokenId>(1000 * id));
  made.final_tokens = Tokens(prompt_tokens + answer_tokens);
  made.user = "user" + std::to_string(id % 50);
  return made;
}

void plan_and_append(Scheduler& scheduler, Step& step) {
  scheduler.next(step);
  scheduler.complete(step);
  for (const Work& work : step.work)
    if (work.is_last_chunk) scheduler.append(work.sequence, static_cast<TokenId>(work.first_position));
}

// All seats taken, all prompts computed, a queue behind them. With kBlockedHead there are seats, and a head
// of the queue that does not fit, and whose prompt is looked up in every step: kLongPrompt tokens of it are
// there.
std::unique_ptr<Scheduler> filled(Setting setting, Step& step) {
  auto made = std::make_unique<Scheduler>(options_for(setting));
  Scheduler& scheduler = *made;
  if (setting == Setting::kBlockedHead) {
    (void)scheduler.add(request(kLong, kLongPrompt, 1));
    while (std::ssize(scheduler.tokens(kLong)) == kLongPrompt) plan_and_append(scheduler, step);
    scheduler.finish(kLong);
  }
  for (SequenceId id = 1; id <= kRunning; ++id) (void)scheduler.add(request(id, kPrompt, kAnswer));
  while (scheduler.stats().waiting > 0 || step.work.size() != kRunning ||
         step.work.front().num_tokens + step.work.back().num_tokens > 2)
    plan_and_append(scheduler, step);
  if (setting == Setting::kBlockedHead) {
    Request head = request(kLong, kRunning * (kAnswer + kPrompt / 2), 1);
    head.priority = -1;
    (void)scheduler.add(std::move(head));
  }
  for (int i = 1; i <= kWaiting; ++i)
    (void)scheduler.add(request(static_cast<SequenceId>(kRunning + i), kPrompt, kAnswer));
  return made;
}

void decode_step(benchmark::State& state, Setting setting) {
  Step step;
  auto scheduler = filled(setting, step);
  std::int64_t left = kAnswer - kPrompt;
  for (auto _ : state) {
    plan_and_append(*scheduler, step);
    if (--left > 0) continue;
    state.PauseTiming();
    scheduler = filled(setting, step);
    left = kAnswer - kPrompt;
    state.ResumeTiming();
  }
  const Stats stats = scheduler->stats();
  state.counters["running"] = static_cast<double>(stats.running);
  state.counters["waiting"] = static_cast<double>(stats.waiting);
  state.counters["work"] = static_cast<double>(step.work.size());
}

// One sequence ends and the next of the queue is admitted in every step: its prompt is looked up, gets its
// blocks and leaves them cached.
void admitting_step(benchmark::State& state) {
  Step step;
  const auto scheduler = filled(Setting::kGrowing, step);
  SequenceId oldest = 1, newest = kRunning + kWaiting;
  for (auto _ : state) {
    scheduler->finish(oldest++);
    (void)scheduler->add(request(++newest, kPrompt, kAnswer));
    plan_and_append(*scheduler, step);
  }
  state.counters["work"] = static_cast<double>(step.work.size());
}

void copy_of_tables(benchmark::State& state) {
  Step step;
  const auto scheduler = filled(Setting::kGrowing, step);
  std::vector<BlockId> copy(static_cast<std::size_t>(kRunning * (kPrompt + kAnswer)));
  std::int64_t bytes = 0;
  for (auto _ : state) {
    std::size_t at = 0;
    for (SequenceId id = 1; id <= kRunning; ++id) {
      const auto table = scheduler->blocks(id);
      std::memcpy(copy.data() + at, table.data(), table.size_bytes());
      at += table.size();
    }
    benchmark::ClobberMemory();
    bytes = static_cast<std::int64_t>(at * sizeof(BlockId));
  }
  state.counters["bytes"] = static_cast<double>(bytes);
}

BENCHMARK_CAPTURE(decode_step, growing, Setting::kGrowing)->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(decode_step, growing_window_state, Setting::kHybrid)->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(decode_step, growing_head_does_not_fit, Setting::kBlockedHead)
    ->Unit(benchmark::kMicrosecond);
BENCHMARK(admitting_step)->Unit(benchmark::kMicrosecond);
BENCHMARK(copy_of_tables)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace plimsoll::schedule

BENCHMARK_MAIN();
