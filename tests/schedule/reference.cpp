// SPDX-License-Identifier: Apache-2.0
#include "tests/schedule/reference.h"

#include <algorithm>
#include <tuple>

namespace plimsoll::schedule {

bool Reference::is_refused(SequenceId id, std::int64_t final_tokens) const {
  return sequences_.contains(id) || most_held(final_tokens) > options_.num_blocks.value ||
         num_waiting() >= options_.max_queue;
}

bool Reference::add(const Request& request) {
  const std::int64_t final_tokens = std::max(std::ssize(request.prompt), request.final_tokens.value);
  if (is_refused(request.id, final_tokens)) return false;
  join(request, true);
  Sequence& added = sequences_[request.id];
  added.request = request;
  added.tokens = request.prompt;
  added.final_tokens = final_tokens;
  added.arrival = ++last_arrival_;
  return true;
}

bool Reference::fork(SequenceId parent, SequenceId child, TokenId next, std::int64_t final_tokens) {
  const auto found = sequences_.find(parent);
  if (found == sequences_.end() || !found->second.is_running || found->second.computed == 0 ||
      found->second.planned != found->second.computed)
    return false;
  final_tokens = std::max(found->second.computed + 1, final_tokens);
  if (is_refused(child, final_tokens)) return false;
  const bool has_seat = std::ssize(running()) < options_.max_num_seqs;
  Sequence added = found->second;
  added.request.id = child;
  added.tokens.resize(static_cast<std::size_t>(added.computed));
  added.tokens.push_back(next);
  added.final_tokens = final_tokens;
  added.arrival = ++last_arrival_;
  added.cached = has_seat ? added.computed : 0;
  join(added.request, false);
  if (has_seat) {
    added.admission = ++last_admission_;
    for (std::size_t g = 0; g < added.tables.size(); ++g) {
      if (!is_state(g)) added.tables[g].resize(static_cast<std::size_t>(pages_for(added.computed)));
      for (const PageId page : added.tables[g])
        if (page != kNone) ++pages_.at(page).holders;
    }
  } else {
    added.tables.clear();
    added.planned = added.computed = added.indexed = added.snapshot = 0;
    added.is_running = false;
  }
  charge(added, added.final_tokens - added.planned);
  sequences_[child] = added;
  return true;
}

std::vector<SequenceId> Reference::running() const {
  std::vector<SequenceId> list;
  for (const auto& [id, sequence] : sequences_)
    if (sequence.is_running) list.push_back(id);
  const auto rank = [this](SequenceId id) {
    return std::tuple(sequences_.at(id).request.priority, sequences_.at(id).turn, id);
  };
  std::ranges::sort(list, {}, rank);
  return list;
}

std::int64_t Reference::num_waiting() const {
  return std::ranges::count_if(sequences_, [](const auto& entry) { return !entry.second.is_running; });
}

Reference::Sequence* Reference::head() {
  const auto place = [this](const Sequence& s) {
    const bool is_new = s.turn == 0;
    return std::tuple(s.request.priority, is_new, s.turn,
                      is_new ? accounts_.at({s.request.priority, s.request.user}).served : 0,
                      is_new ? s.arrival : s.request.id);
  };
  Sequence* first = nullptr;
  for (auto& [id, sequence] : sequences_)
    if (!sequence.is_running && (!first || place(sequence) < place(*first))) first = &sequence;
  return first;
}

void Reference::join(const Request& request, bool waits_new) {
  Account& account = accounts_[{request.priority, request.user}];
  const bool waits_already = std::ranges::any_of(sequences_, [&](const auto& entry) {
    const Sequence& s = entry.second;
    return s.request.priority == request.priority && s.request.user == request.user && s.turn == 0;
  });
  if (waits_new && !waits_already)
    account.served = std::max(account.served, virtual_times_[request.priority]);
}

void Reference::charge(const Sequence& sequence, std::int64_t tokens) {
  const int priority = sequence.request.priority;
  accounts_.at({priority, sequence.request.user}).served += tokens;
  const auto users =
      std::ranges::count_if(accounts_, [&](const auto& entry) { return entry.first.first == priority; });
  virtual_times_[priority] += std::max<std::int64_t>(1, tokens / users);
}

void Reference::finish(SequenceId id) {
  Sequence gone = sequences_.at(id);
  if (gone.is_running) release_all(gone);
  sequences_.erase(id);
  const int priority = gone.request.priority;
  if (gone.turn > 0)
    accounts_.at({priority, gone.request.user}).served -= gone.final_tokens - std::ssize(gone.tokens);
  const auto is_left = [&](bool of_user) {
    return std::ranges::any_of(sequences_, [&](const auto& entry) {
      const Request& other = entry.second.request;
      return other.priority == priority && (!of_user || other.user == gone.request.user);
    });
  };
  if (!is_left(true)) accounts_.erase({priority, gone.request.user});
  if (!is_left(false)) virtual_times_.erase(priority);
}

bool Reference::admit(Sequence& sequence) {
  const std::int64_t found = find(sequence), length = std::ssize(sequence.tokens);
  std::int64_t needed = most_held(length);
  std::vector<std::vector<PageId>> tables(options_.groups.size());
  for (std::size_t g = 0; g < tables.size(); ++g) {
    const std::int64_t first = is_state(g) ? found - 1 : first_needed(g, found * options_.block_size);
    for (std::int64_t i = is_state(g) ? found - 1 : 0; i < found && found > 0; ++i) {
      tables[g].push_back(i < first ? kNone : page_with(text_of(g, sequence, i + 1)));
      if (!is_state(g) && i >= first && pages_.at(tables[g].back()).holders > 0) --needed;
    }
  }
  if (needed > available()) return false;
  for (const auto& table : tables)
    for (const PageId page : table)
      if (page != kNone && pages_.at(page).holders++ == 0) cached_.remove(page);
  sequence.tables = std::move(tables);
  for (std::size_t g = 0; g < sequence.tables.size(); ++g) {
    const bool is_windowed = std::holds_alternative<WindowedCache>(options_.groups[g]);
    const std::int64_t wanted = is_state(g) ? 1 : is_windowed ? 0 : pages_for(length);
    while (std::ssize(sequence.tables[g]) < wanted) sequence.tables[g].push_back(take());
  }
  sequence.is_running = true;
  sequence.admission = ++last_admission_;
  sequence.planned = sequence.computed = sequence.snapshot = found * options_.block_size;
  sequence.indexed = found;
  if (sequence.turn > 0) return true;
  sequence.turn = ++last_turn_;
  sequence.cached = sequence.planned;
  charge(sequence, sequence.final_tokens - sequence.planned);
  if (options_.enable_prefix_caching) {
    counted_.prefix_queries_tokens += length;
    counted_.prefix_hits_tokens += sequence.planned;
  }
  return true;
}

Work Reference::work_of(Sequence& sequence, std::int64_t count) {
  const std::int64_t first = sequence.planned;
  sequence.planned += count;
  return {sequence.request.id, first, count, sequence.planned == std::ssize(sequence.tokens),
          sequence.admission};
}

bool Reference::plan_running(Step& step, std::int64_t& budget) {
  std::vector<SequenceId> ranks = running();
  const auto left_of = [this](SequenceId id) {
    return std::ssize(sequences_.at(id).tokens) - sequences_.at(id).planned;
  };
  const std::int64_t kept = !ranks.empty() && left_of(ranks[0]) > 1 ? 1 : 0;
  std::int64_t for_decodes = budget - kept, for_prefills = -1;
  bool has_room = true;
  std::vector<Work> prefills;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    Sequence& sequence = sequences_.at(ranks[i]);
    const bool is_decode = left_of(ranks[i]) == 1;
    if (!is_decode && for_prefills < 0)
      for_prefills = std::max(
          kept, budget - std::ranges::count_if(ranks, [&](SequenceId id) { return left_of(id) == 1; }));
    std::int64_t& share = is_decode ? for_decodes : for_prefills;
    if (left_of(ranks[i]) == 0 || share == 0) continue;
    const std::int64_t count = cut(sequence, std::min(share, left_of(ranks[i])));
    bool fits = extend(sequence, count, step);
    while (!fits && ranks.size() > i + 1) {
      release_all(sequences_.at(ranks.back()));
      step.preempted.push_back(ranks.back());
      ranks.pop_back();
      ++counted_.preemptions;
      fits = extend(sequence, count, step);
    }
    has_room &= fits;
    if (!fits) continue;
    share -= count;
    budget -= count;
    (is_decode ? step.work : prefills).push_back(work_of(sequence, count));
  }
  step.work.insert(step.work.end(), prefills.begin(), prefills.end());
  return has_room && step.preempted.empty();
}

Step Reference::next() {
  Step step;
  std::int64_t budget = options_.max_num_batched_tokens;
  const bool may_admit = !options_.is_static || running().empty();
  if (!plan_running(step, budget) || !may_admit) return step;
  while ((budget > 0 || options_.is_static) && std::ssize(running()) < options_.max_num_seqs) {
    Sequence* const sequence = head();
    if (!sequence || !admit(*sequence)) break;
    if (budget == 0) continue;
    const std::int64_t count =
        cut(*sequence, std::min(budget, std::ssize(sequence->tokens) - sequence->planned));
    extend(*sequence, count, step);
    budget -= count;
    step.work.push_back(work_of(*sequence, count));
  }
  return step;
}

void Reference::complete(const Step& step) {
  for (const Work& work : step.work) {
    const auto found = sequences_.find(work.sequence);
    if (found == sequences_.end() || !found->second.is_running || found->second.admission != work.admission)
      continue;
    Sequence& sequence = found->second;
    sequence.computed += work.num_tokens;
    if (options_.enable_prefix_caching) offer_computed(sequence);
    for (std::size_t g = 0; g < sequence.tables.size(); ++g)
      for (std::int64_t i = 0; !is_state(g) && i < first_needed(g, sequence.computed); ++i)
        if (PageId& page = sequence.tables[g][static_cast<std::size_t>(i)]; page != kNone) {
          release(page);
          page = kNone;
        }
  }
}

void Reference::append(SequenceId id, TokenId token) {
  sequences_.at(id).tokens.push_back(token);
}

Stats Reference::stats() const {
  Stats stats = counted_;
  stats.running = std::ssize(running());
  stats.waiting = num_waiting();
  stats.blocks_total = options_.num_blocks;
  stats.blocks_cached = Blocks(std::ssize(cached_));
  stats.blocks_used = Blocks(options_.num_blocks.value - available());
  return stats;
}

}  // namespace plimsoll::schedule
