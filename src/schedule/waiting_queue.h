// SPDX-License-Identifier: Apache-2.0
// Who is admitted next? Lower priority numbers first; among equals those who were here before (preempted, or
// forked without a seat) in the order of their first admission; then users in turn, least served first, each
// user's requests by arrival. What a request may take is charged to its user when it is admitted, and what it
// did not take is given back at its end. A user who comes new starts at the level's virtual time, which rises
// with every admission: nobody is passed for ever by users who come later. Not thread-safe.
// Source: docs/formulas/schedule.md, section 4.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "schedule/schedule.h"

namespace plimsoll::schedule {

class WaitingQueue {
 public:
  struct Level;
  /// One user's account at one priority; lives as long as one of the user's sequences is waiting or running.
  struct Account {
    Level* level = nullptr;
    int priority = 0;
    std::string user;
    std::int64_t served = 0;                      // tokens charged, in the level's virtual time
    std::int64_t num_sequences = 0;               // waiting or running
    std::map<std::uint64_t, SequenceId> waiting;  // by arrival; never admitted so far
  };
  struct Level {  // of one priority
    std::map<std::string, Account> users;
    std::set<std::tuple<std::int64_t, std::uint64_t, Account*>> order;  // served, first arrival: who waits
    std::set<std::pair<std::uint64_t, SequenceId>> returning;           // turn, sequence
    std::int64_t virtual_time = 0;
  };

  /// One more sequence of this user is here; leave() ends it. The account stays where it is.
  Account* join(int priority, const std::string& user);
  /// `unused`: of what was charged for the sequence.
  void leave(Account* account, std::int64_t unused);

  /// A sequence that was never admitted waits; arrivals rise and are unique.
  void add(Account* account, std::uint64_t arrival, SequenceId sequence);
  void remove(Account* account, std::uint64_t arrival);
  /// A sequence that was admitted before waits again.
  void add_returning(Account* account, std::uint64_t turn, SequenceId sequence);
  void remove_returning(Account* account, std::uint64_t turn, SequenceId sequence);

  /// The one to admit next; nothing when nobody waits.
  std::optional<SequenceId> head() const;
  /// First admission: the user is charged `tokens`.
  void charge(Account* account, std::int64_t tokens);

  std::int64_t size() const { return size_; }

 private:
  template <class Change>
  static void reorder(Account& account, Change change);

  std::map<int, Level> levels_;  // by priority; none is empty
  std::int64_t size_ = 0;
};

}  // namespace plimsoll::schedule
