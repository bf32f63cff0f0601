// SPDX-License-Identifier: Apache-2.0
#include "tests/schedule/player.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <map>
#include <set>
#include <utility>

#include "tests/schedule/reference.h"

namespace plimsoll::schedule {
namespace {

std::string text_of(const std::vector<Work>& list) {
  std::string text;
  for (const Work& work : list)
    text += fmt::format(" {}:{}+{}{}", work.sequence, work.first_position, work.num_tokens,
                        work.is_last_chunk ? "!" : "");
  return text;
}

std::string text_of(const std::vector<Copy>& list) {
  std::string text;
  for (const Copy& copy : list) text += fmt::format(" {}", copy.group);
  return text;
}

Request request_of(const Event& event, SequenceId id) {
  Request request;
  request.id = id;
  request.prompt = prompt_of(event);
  request.final_tokens = Tokens(event.prompt + event.announced);
  request.priority = event.priority;
  request.user = std::string(static_cast<std::size_t>(event.user), 'u');
  request.cache_salt = event.salt ? "salt" : "";
  request.adapter = event.adapter ? "adaptor" : "";
  if (event.image > 0) request.contents = {{2, 3, "image" + std::to_string(event.image)}};
  return request;
}

// Who ran while a sequence waited for its first admission.
struct Wait {
  struct Front {
    std::int64_t final_tokens = 0, preemptions = 0;
  };
  std::int64_t steps = 0;
  std::map<std::int64_t, Front> in_front;  // by serial number
};

struct Live {
  Event event;
  std::int64_t serial = 0;  // ids are used again
  std::int64_t final_tokens = 0, end_length = 0, planned = 0;
  std::uint64_t admission = 0;          // of the work it has or had
  std::vector<std::uint64_t> contents;  // what a slot holds once a position is computed
};

class Player {
 public:
  explicit Player(const Options& options)
      : options_(options),
        scheduler_(options),
        reference_(options),
        slots_(static_cast<std::size_t>(options.num_blocks.value * options.block_size)) {}

  Played play(const std::vector<Event>& events) {
    for (const Event& event : events) {
      if (!played_.failure.empty()) break;
      happen(event);
      check_state();
    }
    // Everyone finishes once nothing new arrives.
    for (int i = 0; played_.failure.empty() && scheduler_.has_work(); ++i) {
      happen({EventKind::kStep});
      check_state();
      expect(i < 20'000, "the schedule does not end");
    }
    expect(scheduler_.stats().blocks_used == Blocks(0), "blocks are held by nobody");
    const Stats stats = scheduler_.stats();
    played_.preemptions = stats.preemptions;
    played_.hit_tokens = stats.prefix_hits_tokens;
    played_.copies = stats.blocks_copied.value;
    played_.evictions = stats.blocks_evicted.value;
    return played_;
  }

 private:
  void expect(bool holds, const std::string& sentence) {
    if (!holds && played_.failure.empty())
      played_.failure = fmt::format("step {}: {}", played_.steps, sentence);
  }

  void happen(const Event& event) {
    switch (event.kind) {
      case EventKind::kAdd:
        return add(event);
      case EventKind::kCancel:
        if (live_.empty()) return;
        return end(std::next(live_.begin(), event.which % std::ssize(live_))->first);
      case EventKind::kFork:
        return fork(event.which);
      case EventKind::kStep:
        plan();
        while (!pending_.empty()) compute();
        return;
      case EventKind::kPlan:
        if (pending_.size() < 5) plan();
        return;
    }
  }

  void add(const Event& event) {
    if (event.prompt == 0) return;
    // A client may use an id again as soon as it is free, though its work is still on the way.
    const SequenceId id = ended_ > 0 && event.which % 2 == 0 ? std::exchange(ended_, 0) : ++last_id_;
    const Request request = request_of(event, id);
    const bool is_taken = scheduler_.add(request).has_value();
    expect(is_taken == reference_.add(request), "only one of the two refuses the request");
    played_.refusals += !is_taken;
    if (!is_taken) return;
    has_priorities_ |= event.priority != first_priority_.value_or(event.priority);
    first_priority_ = event.priority;
    live_[id] = {.event = event,
                 .serial = ++last_serial_,
                 .final_tokens = event.prompt + event.announced,
                 .end_length = event.prompt + std::min(event.generated, event.announced),
                 .contents = {}};
    waits_[id];
  }

  void fork(int which) {
    while (!pending_.empty()) compute();
    const auto running = reference_.running();
    if (running.empty()) return;
    const SequenceId parent = running[static_cast<std::size_t>(which) % running.size()];
    const Live from = live_.at(parent);
    const auto next = static_cast<TokenId>(7000 + last_id_);
    const std::int64_t shared = reference_.computed(parent), length = shared + 1,
                       final_tokens = length + 3 + which % 8;
    ++last_id_;
    const bool is_taken = scheduler_.fork(parent, last_id_, next, Tokens(final_tokens)).has_value();
    expect(is_taken == reference_.fork(parent, last_id_, next, final_tokens), "only one of the two forks");
    if (!is_taken) return;
    ++played_.forks;
    Live child = from;
    child.final_tokens = final_tokens;
    child.end_length = length + 1 + which % 3;
    child.contents.resize(static_cast<std::size_t>(std::min(shared, std::ssize(from.contents))));
    child.admission = 0;
    child.serial = ++last_serial_;
    live_[last_id_] = child;
  }

  void end(SequenceId id) {
    ended_ = id;
    scheduler_.finish(id);
    reference_.finish(id);
    live_.erase(id);
    waits_.erase(id);
  }

  std::uint64_t content(SequenceId id, std::int64_t position) {
    Live& live = live_.at(id);
    const auto tokens = scheduler_.tokens(id);
    for (std::int64_t i = std::ssize(live.contents); i <= position; ++i) {
      std::uint64_t content = i > 0
                                  ? live.contents.back()
                                  : static_cast<std::uint64_t>(1 + live.event.salt + 2 * live.event.adapter);
      content = (content ^ static_cast<std::uint64_t>(tokens[static_cast<std::size_t>(i)] + 1)) *
                0x9e3779b97f4a7c15u;
      if (i >= 2 && i < 5) content += static_cast<std::uint64_t>(live.event.image);
      live.contents.push_back(content ^ (content >> 29));
    }
    return live.contents[static_cast<std::size_t>(position)];
  }

  std::uint64_t& slot(std::span<const BlockId> table, std::int64_t position) {
    const BlockId block = table[static_cast<std::size_t>(position / options_.block_size)];
    return slots_[static_cast<std::size_t>(block * options_.block_size + position % options_.block_size)];
  }

  void plan() {
    const bool is_ahead = !pending_.empty();
    const auto before = reference_.running();
    const Step step = scheduler_.next(), expected = reference_.next();
    ++played_.steps;
    expect(text_of(step.work) == text_of(expected.work),
           fmt::format("work is{}, by the rules{}", text_of(step.work), text_of(expected.work)));
    expect(step.preempted == expected.preempted, "others are preempted than by the rules");
    expect(text_of(step.copies) == text_of(expected.copies),
           fmt::format("groups of copies are{}, by the rules{}", text_of(step.copies),
                       text_of(expected.copies)));
    if (!played_.failure.empty()) return;  // the two have parted: nothing that follows is sure to exist
    check_step(step, before, is_ahead);
    for (const SequenceId id : step.preempted) live_.at(id).planned = 0;
    for (const Work& work : step.work) {
      Live& live = live_.at(work.sequence);
      if (live.admission != work.admission) live.planned = work.first_position;
      expect(live.planned == work.first_position, "work does not go on where it stopped");
      live.planned = work.first_position + work.num_tokens;
      live.admission = work.admission;
    }
    if (options_.is_static && !before.empty())
      expect(scheduler_.stats().running <= std::ssize(before), "a static batch takes newcomers");
    check_waits(step, is_ahead);
    pending_.push_back(step);
  }

  void check_step(const Step& step, const std::vector<SequenceId>& before, bool is_ahead) {
    std::int64_t tokens = 0;
    std::set<SequenceId> seen;
    bool is_behind_prefill = false;
    for (const Work& work : step.work) {
      expect(work.num_tokens > 0, "empty work");
      expect(seen.insert(work.sequence).second, "two shares of one sequence in a step");
      tokens += work.num_tokens;
      const bool is_decode =
          work.num_tokens == 1 && work.is_last_chunk && std::ranges::count(before, work.sequence) > 0;
      expect(!is_decode || !is_behind_prefill, "a decode behind a prefill");
      is_behind_prefill |= !is_decode;
    }
    for (const SequenceId id : step.preempted) expect(!seen.contains(id), "work for a preempted sequence");
    expect(tokens <= options_.max_num_batched_tokens, "the budget is exceeded");
    expect(std::ssize(step.work) <= options_.max_num_seqs, "more sequences than seats");
    if (is_ahead) return;
    const auto ranks = reference_.running();
    expect(ranks.empty() || seen.contains(ranks.front()), "the first in rank computes nothing");
    expect(!ranks.empty() || !scheduler_.has_work(), "sequences wait and nobody runs");
  }

  // The bound of docs/formulas/schedule.md, section 5.
  void check_waits(const Step& step, bool is_ahead) {
    const auto running = reference_.running();
    for (auto& [id, wait] : waits_) {
      const auto front_of = [&](SequenceId front) -> Wait::Front& {
        Wait::Front& entry = wait.in_front[live_.at(front).serial];
        entry.final_tokens = live_.at(front).final_tokens;
        return entry;
      };
      for (const SequenceId front : running) front_of(front);
      for (const SequenceId front : step.preempted) ++front_of(front).preemptions;
      wait.steps += !is_ahead;
    }
    for (const SequenceId id : running) {
      const auto found = waits_.find(id);
      if (found == waits_.end()) continue;
      std::int64_t bound = 0;
      const bool is_strict = !has_priorities_ && played_.forks == 0;
      for (const auto& [serial, front] : found->second.in_front)
        if (serial != live_.at(id).serial)
          bound += front.final_tokens * (is_strict ? 1 : 1 + front.preemptions);
      const std::int64_t waited = found->second.steps - !is_ahead;
      expect(waited <= bound, fmt::format("{} waited {} steps, the bound is {}", id, waited, bound));
      waits_.erase(found);
    }
  }

  // Carries out the oldest planned step as an engine would.
  void compute() {
    const Step step = pending_.front();
    pending_.pop_front();
    if (!played_.failure.empty()) return;
    for (const Copy& copy : step.copies)
      for (std::int64_t i = 0; i < options_.block_size; ++i)
        slots_[static_cast<std::size_t>(copy.to * options_.block_size + i)] =
            slots_[static_cast<std::size_t>(copy.from * options_.block_size + i)];
    std::vector<Work> current;
    for (const Work& work : step.work)
      if (const auto found = live_.find(work.sequence); found != live_.end() &&
                                                        found->second.admission == work.admission &&
                                                        reference_.is_running(work.sequence))
        current.push_back(work);
    for (const Work& work : current) compute(work);
    scheduler_.complete(step);
    reference_.complete(step);
    for (const Work& work : current) {
      if (!work.is_last_chunk) continue;
      const Live& live = live_.at(work.sequence);
      const std::int64_t length = std::ssize(scheduler_.tokens(work.sequence));
      if (length >= live.end_length) {
        end(work.sequence);
        continue;
      }
      const TokenId token = generated_token(live.event, length);
      scheduler_.append(work.sequence, token);
      reference_.append(work.sequence, token);
    }
  }

  void compute(const Work& work) {
    const std::int64_t first = work.first_position, end = first + work.num_tokens;
    for (std::size_t g = 0; g < options_.groups.size(); ++g) {
      const auto table = scheduler_.blocks(work.sequence, static_cast<int>(g));
      const std::int64_t room = std::ssize(table) * options_.block_size;
      if (std::holds_alternative<StateCache>(options_.groups[g])) {
        expect(first == 0 || slot(table, 0) == content(work.sequence, first - 1),
               "a state of another prefix");
        slot(table, 0) = content(work.sequence, end - 1);
        continue;
      }
      const auto* windowed = std::get_if<WindowedCache>(&options_.groups[g]);
      const std::int64_t read_from = windowed ? std::max<std::int64_t>(first - windowed->window + 1, 0) : 0;
      if (room < end) return expect(false, "a table is too short for its work");
      for (std::int64_t p = read_from; p < first; ++p) {
        const bool is_there = table[static_cast<std::size_t>(p / options_.block_size)] != kNoBlock;
        expect(is_there, "a block is gone that is still read");
        expect(!is_there || slot(table, p) == content(work.sequence, p), "a slot of another prefix is read");
      }
      for (std::int64_t p = first; p < end; ++p) slot(table, p) = content(work.sequence, p);
    }
  }

  void check_state() {
    std::map<BlockId, std::size_t> used;  // block -> group
    for (const auto& [id, live] : live_) {
      expect(scheduler_.cached_prompt_tokens(id) == reference_.cached_prompt_tokens(id),
             "another part of a prompt was found than by the rules");
      std::set<BlockId> own;
      for (std::size_t g = 0; g < options_.groups.size(); ++g)
        for (const BlockId block : scheduler_.blocks(id, static_cast<int>(g))) {
          if (block == kNoBlock) {
            ++played_.slid_blocks;
            continue;
          }
          expect(block >= 0 && block < options_.num_blocks.value, "no block of the pool");
          expect(own.insert(block).second, "a block stands twice in one sequence");
          expect(used.emplace(block, g).first->second == g, "a block stands in two groups");
        }
    }
    const Stats stats = scheduler_.stats(), expected = reference_.stats();
    expect(stats.blocks_used.value == std::ssize(used), "other blocks are counted than tables hold");
    expect((stats.blocks_used + stats.blocks_cached).value <= options_.num_blocks.value,
           "more than the pool");
    const auto numbers = [](const Stats& s) {
      return fmt::format(
          "running {} waiting {} preempted {} used {} cached {} evicted {} copied {} hits {}/{}", s.running,
          s.waiting, s.preemptions, s.blocks_used.value, s.blocks_cached.value, s.blocks_evicted.value,
          s.blocks_copied.value, s.prefix_hits_tokens, s.prefix_queries_tokens);
    };
    expect(numbers(stats) == numbers(expected), numbers(stats) + "; by the rules: " + numbers(expected));
    expect(stats.running + stats.waiting == std::ssize(live_), "somebody is lost");
    expect(stats.running <= options_.max_num_seqs, "more run than there are seats");
  }

  Options options_;
  Scheduler scheduler_;
  Reference reference_;
  std::vector<std::uint64_t> slots_;  // [blocks, block_size]
  std::map<SequenceId, Live> live_;
  std::map<SequenceId, Wait> waits_;  // of those never admitted
  std::deque<Step> pending_;
  std::optional<int> first_priority_;
  bool has_priorities_ = false;
  SequenceId last_id_ = 0, ended_ = 0;
  std::int64_t last_serial_ = 0;
  Played played_;
};

}  // namespace

Played play(const Trace& trace) {
  return Player(trace.options).play(trace.events);
}

}  // namespace plimsoll::schedule
