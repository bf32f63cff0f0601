// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "tests/schedule/reference.h"

namespace plimsoll::schedule {

bool Reference::is_state(std::size_t group) const {
  return std::holds_alternative<StateCache>(options_.groups[group]);
}

// Tokens that one token reads; without end for a growing group.
std::int64_t Reference::window_of(std::size_t group) const {
  const auto* windowed = std::get_if<WindowedCache>(&options_.groups[group]);
  return windowed ? windowed->window : 1'000'000;
}

std::int64_t Reference::pages_for(std::int64_t tokens) const {
  return (tokens + options_.block_size - 1) / options_.block_size;
}

std::int64_t Reference::first_needed(std::size_t group, std::int64_t computed) const {
  std::int64_t block = 0;
  while ((block + 1) * options_.block_size <= computed - window_of(group) + 1) ++block;
  return block;
}

std::int64_t Reference::most_held(std::int64_t tokens) const {
  std::int64_t sum = 0;
  for (std::size_t g = 0; g < options_.groups.size(); ++g)
    sum += is_state(g) ? 1
                       : std::min(pages_for(tokens),
                                  pages_for(window_of(g) - 1 + options_.max_num_batched_tokens) + 1);
  return sum;
}

std::string Reference::text_of(std::size_t group, const Sequence& sequence, std::int64_t num_blocks) const {
  const Request& request = sequence.request;
  std::string text = std::to_string(group) + "/" + request.cache_salt + "/" + request.adapter;
  for (std::int64_t i = 0; i < num_blocks * options_.block_size; ++i) {
    text += ' ' + std::to_string(sequence.tokens[static_cast<std::size_t>(i)]);
    for (const ForeignContent& content : request.contents)
      if (i >= content.first_position && i < content.first_position + content.num_tokens) text += content.key;
  }
  return text;
}

Reference::PageId Reference::page_with(const std::string& text) const {
  const auto found = offers_.find(text);
  return found == offers_.end() ? kNone : found->second;
}

bool Reference::can_serve(const Sequence& sequence, std::size_t group, std::int64_t depth) const {
  const std::int64_t first = is_state(group) ? depth - 1 : first_needed(group, depth * options_.block_size);
  for (std::int64_t i = depth; i > first; --i)
    if (page_with(text_of(group, sequence, i)) == kNone) return false;
  return true;
}

std::int64_t Reference::find(const Sequence& sequence) const {
  if (!options_.enable_prefix_caching) return 0;
  std::int64_t depth = (std::ssize(sequence.tokens) - 1) / options_.block_size;
  for (; depth > 0; --depth) {
    bool is_enough = true;
    for (std::size_t g = 0; is_enough && g < options_.groups.size(); ++g)
      is_enough = can_serve(sequence, g, depth);
    if (is_enough) break;
  }
  return depth;
}

Reference::PageId Reference::take() {
  if (num_free_ > 0) {
    --num_free_;
  } else {
    offers_.erase(pages_.at(cached_.front()).offered);
    pages_.erase(cached_.front());
    cached_.pop_front();
    ++counted_.blocks_evicted.value;
  }
  pages_[++last_page_].holders = 1;
  return last_page_;
}

void Reference::release(PageId page) {
  if (--pages_.at(page).holders > 0) return;
  if (!pages_.at(page).offered.empty()) {
    cached_.push_back(page);
  } else {
    pages_.erase(page);
    ++num_free_;
  }
}

void Reference::release_all(Sequence& sequence) {
  for (std::size_t g = 0; g < sequence.tables.size(); ++g)
    if (is_state(g)) release(sequence.tables[g][0]);
  for (std::int64_t i = pages_for(sequence.final_tokens); i-- > 0;)
    for (std::size_t g = 0; g < sequence.tables.size(); ++g)
      if (const auto& table = sequence.tables[g];
          !is_state(g) && i < std::ssize(table) && table[static_cast<std::size_t>(i)] != kNone)
        release(table[static_cast<std::size_t>(i)]);
  sequence.tables.clear();
  sequence.planned = sequence.computed = sequence.indexed = sequence.snapshot = 0;
  sequence.is_running = false;
}

void Reference::offer(PageId page, const std::string& text) {
  if (page == kNone || !offers_.emplace(text, page).second) return;
  pages_.at(page).offered = text;
}

// What is there already and about to be written over or beside.
Reference::PageId* Reference::written(Sequence& sequence, std::size_t group) {
  auto& table = sequence.tables[group];
  if (is_state(group)) return &table[0];
  const auto block = static_cast<std::size_t>(sequence.planned / options_.block_size);
  return sequence.planned % options_.block_size != 0 ? &table[block] : nullptr;
}

void Reference::copy(std::size_t group, PageId& page, Step& step) {
  step.copies.push_back({static_cast<int>(group), 0, 0});
  ++counted_.blocks_copied.value;
  const PageId fresh = take();
  release(page);
  page = fresh;
}

bool Reference::extend(Sequence& sequence, std::int64_t count, Step& step) {
  const std::int64_t end = pages_for(sequence.planned + count);
  std::int64_t needed = 0;
  for (std::size_t g = 0; g < options_.groups.size(); ++g) {
    if (!is_state(g)) needed += std::max<std::int64_t>(0, end - std::ssize(sequence.tables[g]));
    const PageId* const page = written(sequence, g);
    if (page && pages_.at(*page).holders > 1) ++needed;
  }
  if (needed > available()) return false;
  for (std::size_t g = 0; g < options_.groups.size(); ++g) {
    PageId* const page = written(sequence, g);
    if (page && pages_.at(*page).holders > 1) copy(g, *page, step);
    while (!is_state(g) && std::ssize(sequence.tables[g]) < end) sequence.tables[g].push_back(take());
  }
  for (std::size_t g = 0; g < options_.groups.size(); ++g) {
    PageId* const page = written(sequence, g);
    if (!page || *page == kNone || pages_.at(*page).offered.empty()) continue;
    if (available() > 0) {
      copy(g, *page, step);
    } else {
      offers_.erase(pages_.at(*page).offered);
      pages_.at(*page).offered.clear();
    }
  }
  return true;
}

std::int64_t Reference::cut(const Sequence& sequence, std::int64_t wanted) const {
  bool has_states = false;
  for (std::size_t g = 0; g < options_.groups.size(); ++g) has_states |= is_state(g);
  if (!has_states || !options_.enable_prefix_caching) return wanted;
  const std::int64_t size = options_.block_size, length = std::ssize(sequence.tokens);
  const std::int64_t last_border = (length - 1) / size * size;
  std::int64_t end = sequence.planned + wanted;
  if (end == length && sequence.planned < last_border) end = last_border;
  if (end < length && end / size * size > sequence.planned) end = end / size * size;
  return end - sequence.planned;
}

void Reference::offer_computed(Sequence& sequence) {
  const std::int64_t size = options_.block_size,
                     last_border = (std::ssize(sequence.tokens) - 1) / size * size;
  for (; (sequence.indexed + 1) * size <= sequence.computed; ++sequence.indexed)
    for (std::size_t g = 0; g < sequence.tables.size(); ++g)
      if (!is_state(g))
        offer(sequence.tables[g][static_cast<std::size_t>(sequence.indexed)],
              text_of(g, sequence, sequence.indexed + 1));
  if (sequence.computed % size != 0 || sequence.planned != sequence.computed) return;
  if (sequence.computed - sequence.snapshot < options_.snapshot_blocks * size &&
      sequence.computed != last_border)
    return;
  sequence.snapshot = sequence.computed;
  for (std::size_t g = 0; g < sequence.tables.size(); ++g)
    if (is_state(g)) offer(sequence.tables[g][0], text_of(g, sequence, sequence.indexed));
}

}  // namespace plimsoll::schedule
