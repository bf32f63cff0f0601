// SPDX-License-Identifier: Apache-2.0
#include "tests/schedule/trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <random>

namespace plimsoll::schedule {
namespace {

class Dice {
 public:
  explicit Dice(std::uint32_t seed) : random_(seed) {}
  int below(int limit) { return static_cast<int>(random_() % static_cast<std::uint32_t>(limit)); }
  int from_to(int least, int most) { return least + below(most - least + 1); }
  bool once_in(int times) { return below(times) == 0; }

 private:
  std::mt19937 random_;
};

std::vector<CacheGroup> random_groups(Dice& dice) {
  const WindowedCache narrow{dice.from_to(1, 6)}, wide{dice.from_to(4, 30)};
  switch (dice.below(9)) {
    case 0:
      return {wide};
    case 1:
      return {StateCache{}};
    case 2:
      return {GrowingCache{}, narrow};
    case 3:
      return {GrowingCache{}, StateCache{}};
    case 4:
      return {narrow, StateCache{}};
    case 5:
      return {GrowingCache{}, narrow, wide, StateCache{}};
    case 6:
      return {GrowingCache{}, GrowingCache{}, StateCache{}, StateCache{}};
    default:
      return {GrowingCache{}};
  }
}

Options random_options(Dice& dice) {
  Options options;
  options.groups = random_groups(dice);
  options.block_size = 1 << dice.below(4);
  const int most = 200 / options.block_size * static_cast<int>(options.groups.size());
  options.num_blocks = Blocks(dice.from_to(most / 8, dice.once_in(2) ? most / 3 : most));
  options.max_num_seqs = dice.once_in(4) ? dice.from_to(1, 2) : dice.from_to(3, 10);
  options.max_num_batched_tokens = dice.from_to(1, dice.once_in(3) ? 5 : 40);
  options.max_queue = dice.from_to(3, 16);
  options.enable_prefix_caching = !dice.once_in(6);
  options.snapshot_blocks = dice.from_to(1, 3);
  options.is_static = dice.once_in(8);
  return options;
}

Event random_add(Dice& dice, bool has_priorities, int number) {
  Event event{.kind = EventKind::kAdd, .which = number};
  event.prompt = dice.once_in(8) ? dice.from_to(1, 70) : dice.from_to(1, 24);
  event.shared = dice.once_in(3) ? event.prompt : dice.below(event.prompt + 1);
  event.family = dice.below(2);
  event.announced = dice.once_in(3) ? dice.from_to(20, 60) : dice.from_to(1, 30);
  event.generated = dice.from_to(1, event.announced);
  event.priority = has_priorities ? dice.below(3) : 0;
  event.user = dice.below(3);
  event.salt = dice.once_in(10);
  event.adapter = dice.once_in(10);
  event.image = dice.once_in(8) ? dice.from_to(1, 2) : 0;
  return event;
}

std::string text_of(const CacheGroup& group) {
  if (const auto* windowed = std::get_if<WindowedCache>(&group))
    return fmt::format("WindowedCache{{{}}}", windowed->window);
  return std::holds_alternative<GrowingCache>(group) ? "GrowingCache{}" : "StateCache{}";
}

std::string text_of(const Event& event) {
  static constexpr std::array kNames{"kAdd", "kCancel", "kFork", "kStep", "kPlan"};
  std::string text = fmt::format("{{EventKind::{}", kNames[static_cast<std::size_t>(event.kind)]);
  if (event.kind == EventKind::kCancel || event.kind == EventKind::kFork)
    text += fmt::format(", {}", event.which);
  if (event.kind == EventKind::kAdd)
    text += fmt::format(", {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}", event.which, event.prompt,
                        event.shared, event.family, event.announced, event.generated, event.priority,
                        event.user, event.salt, event.adapter, event.image);
  return text + "}";
}

// One try at each piece of `size` events, from the rear: later events matter less often.
bool remove_pieces(Trace& trace, std::size_t size, const std::function<bool(const Trace&)>& fails) {
  bool has_changed = false;
  for (std::size_t end = trace.events.size(); end > 0;) {
    const std::size_t begin = end - std::min(size, end);
    Trace shorter = trace;
    shorter.events.erase(shorter.events.begin() + static_cast<std::ptrdiff_t>(begin),
                         shorter.events.begin() + static_cast<std::ptrdiff_t>(end));
    if (fails(shorter)) {
      trace = std::move(shorter);
      has_changed = true;
    }
    end = begin;
  }
  return has_changed;
}

bool lessen_fields(Trace& trace, const std::function<bool(const Trace&)>& fails) {
  static constexpr std::array kFields{&Event::which,     &Event::prompt,    &Event::shared,   &Event::family,
                                      &Event::announced, &Event::generated, &Event::priority, &Event::user,
                                      &Event::salt,      &Event::adapter,   &Event::image};
  bool has_changed = false;
  for (std::size_t i = 0; i < trace.events.size(); ++i)
    for (const auto field : kFields)
      for (const int lesser : {0, trace.events[i].*field / 2, trace.events[i].*field - 1}) {
        if (lesser < 0 || lesser >= trace.events[i].*field) continue;
        Trace simpler = trace;
        simpler.events[i].*field = lesser;
        if (!fails(simpler)) continue;
        trace = std::move(simpler);
        has_changed = true;
      }
  return has_changed;
}

}  // namespace

Trace make_trace(std::uint32_t seed, int num_events) {
  Dice dice(seed);
  Trace trace;
  trace.options = random_options(dice);
  const bool has_priorities = dice.once_in(2), has_forks = dice.once_in(2), plans_ahead = dice.once_in(3);
  const int adds_in_100 = dice.from_to(8, 40);
  for (int i = 0; i < num_events; ++i) {
    const int number = dice.below(100);
    if (number < adds_in_100)
      trace.events.push_back(random_add(dice, has_priorities, i));
    else if (number < adds_in_100 + 4)
      trace.events.push_back({EventKind::kCancel, dice.below(30)});
    else if (has_forks && number < adds_in_100 + 10)
      trace.events.push_back({EventKind::kFork, dice.below(30)});
    else
      trace.events.push_back({plans_ahead && dice.once_in(2) ? EventKind::kPlan : EventKind::kStep});
  }
  return trace;
}

Trace shrink(Trace trace, const std::function<bool(const Trace&)>& fails) {
  for (std::size_t size = std::max<std::size_t>(trace.events.size() / 2, 1); size > 0; size /= 2)
    while (remove_pieces(trace, size, fails) && size == 1) {
    }
  while (lessen_fields(trace, fails) || remove_pieces(trace, 1, fails)) {
  }
  return trace;
}

std::string as_test(const Trace& trace) {
  const Options& options = trace.options;
  std::string groups, events;
  for (const CacheGroup& group : options.groups) groups += (groups.empty() ? "" : ", ") + text_of(group);
  for (const Event& event : trace.events) events += "      " + text_of(event) + ",\n";
  return fmt::format(
      "TEST(FoundTraces, NameIt) {{\n"
      "  Trace trace;\n"
      "  trace.options = {{.num_blocks = Blocks({}), .block_size = {}, .groups = {{{}}}, .max_num_seqs = "
      "{},\n"
      "                   .max_num_batched_tokens = {}, .max_queue = {}, .enable_prefix_caching = {},\n"
      "                   .snapshot_blocks = {}, .is_static = {}}};\n"
      "  trace.events = {{\n{}  }};\n"
      "  EXPECT_EQ(play(trace).failure, \"\");\n"
      "}}\n",
      options.num_blocks.value, options.block_size, groups, options.max_num_seqs,
      options.max_num_batched_tokens, options.max_queue, options.enable_prefix_caching,
      options.snapshot_blocks, options.is_static, events);
}

std::vector<TokenId> prompt_of(const Event& event) {
  std::vector<TokenId> tokens;
  for (int i = 0; i < event.prompt; ++i)
    tokens.push_back(i < event.shared ? 10 + event.family : 100 + (event.which * 7 + i) % 5);
  return tokens;
}

TokenId generated_token(const Event& event, std::int64_t position) {
  if (event.which % 2 == 0) return 10 + event.family;
  return 100 + static_cast<TokenId>((event.which + position) % 5);
}

}  // namespace plimsoll::schedule
