// SPDX-License-Identifier: Apache-2.0
// The scheduler as docs/formulas/schedule.md tells it, from plain lists: nothing is kept that can be counted
// again, prefixes are compared as whole texts, and a page is a new object whenever it is taken. Slow on
// purpose.
#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <string>
#include <vector>

#include "schedule/schedule.h"

namespace plimsoll::schedule {

class Reference {
 public:
  explicit Reference(const Options& options) : options_(options), num_free_(options.num_blocks.value) {}

  bool add(const Request& request);
  bool fork(SequenceId parent, SequenceId child, TokenId next, std::int64_t final_tokens);
  Step next();  // of copies: the groups alone
  void complete(const Step& step);
  void append(SequenceId id, TokenId token);
  void finish(SequenceId id);

  Stats stats() const;
  std::int64_t cached_prompt_tokens(SequenceId id) const { return sequences_.at(id).cached; }
  std::int64_t computed(SequenceId id) const { return sequences_.at(id).computed; }
  bool is_running(SequenceId id) const { return sequences_.at(id).is_running; }
  /// By rank.
  std::vector<SequenceId> running() const;

 private:
  using PageId = std::int64_t;
  static constexpr PageId kNone = -1;
  struct Page {
    int holders = 0;
    std::string offered;  // what the prefix tree would say it is; empty: nothing
  };
  struct Sequence {
    Request request;
    std::vector<TokenId> tokens;
    std::int64_t final_tokens = 0, planned = 0, computed = 0, cached = 0, indexed = 0, snapshot = 0;
    std::uint64_t arrival = 0, turn = 0, admission = 0;
    bool is_running = false;
    std::vector<std::vector<PageId>> tables;  // [groups]
  };
  struct Account {
    std::int64_t served = 0;
  };

  std::int64_t window_of(std::size_t group) const;
  bool is_state(std::size_t group) const;
  std::int64_t pages_for(std::int64_t tokens) const;
  std::int64_t first_needed(std::size_t group, std::int64_t computed) const;
  std::int64_t most_held(std::int64_t tokens) const;
  std::int64_t num_waiting() const;
  std::int64_t available() const { return num_free_ + static_cast<std::int64_t>(cached_.size()); }

  std::string text_of(std::size_t group, const Sequence& sequence, std::int64_t num_blocks) const;
  PageId page_with(const std::string& text) const;
  std::int64_t find(const Sequence& sequence) const;
  bool can_serve(const Sequence& sequence, std::size_t group, std::int64_t depth) const;

  PageId take();
  void release(PageId page);
  void release_all(Sequence& sequence);
  void offer(PageId page, const std::string& text);
  PageId* written(Sequence& sequence, std::size_t group);
  void copy(std::size_t group, PageId& page, Step& step);
  bool extend(Sequence& sequence, std::int64_t count, Step& step);
  std::int64_t cut(const Sequence& sequence, std::int64_t wanted) const;
  Work work_of(Sequence& sequence, std::int64_t count);
  bool plan_running(Step& step, std::int64_t& budget);
  Sequence* head();
  bool admit(Sequence& sequence);
  void charge(const Sequence& sequence, std::int64_t tokens);
  void join(const Request& request, bool waits_new);
  void offer_computed(Sequence& sequence);
  bool is_refused(SequenceId id, std::int64_t final_tokens) const;

  Options options_;
  std::map<SequenceId, Sequence> sequences_;
  std::map<PageId, Page> pages_;  // held and cached ones
  std::map<std::string, PageId> offers_;
  std::list<PageId> cached_;  // released longest ago first
  std::int64_t num_free_;
  PageId last_page_ = 0;
  std::map<std::pair<int, std::string>, Account> accounts_;  // by priority and user
  std::map<int, std::int64_t> virtual_times_;                // by priority
  std::uint64_t last_arrival_ = 0, last_turn_ = 0, last_admission_ = 0;
  Stats counted_;
};

}  // namespace plimsoll::schedule
