// SPDX-License-Identifier: Apache-2.0
#include "schedule/waiting_queue.h"

#include <algorithm>

namespace plimsoll::schedule {

// The place in the order depends on what `change` changes. It moves there, and is not made anew.
template <class Change>
void WaitingQueue::reorder(Account& account, Change change) {
  const auto key = [&] { return std::tuple(account.served, account.waiting.begin()->first, &account); };
  auto& order = account.level->order;
  auto place = account.waiting.empty() ? decltype(order.extract(key())){} : order.extract(key());
  change();
  if (account.waiting.empty()) return;
  if (place.empty()) {
    order.insert(key());
  } else {
    place.value() = key();
    order.insert(std::move(place));
  }
}

WaitingQueue::Account* WaitingQueue::join(int priority, const std::string& user) {
  Level& level = levels_[priority];
  const auto [found, is_new] = level.users.try_emplace(user);
  Account& account = found->second;
  if (is_new) {
    account.level = &level;
    account.priority = priority;
    account.user = user;
  }
  ++account.num_sequences;
  return &account;
}

void WaitingQueue::leave(Account* account, std::int64_t unused) {
  reorder(*account, [&] { account->served -= unused; });
  if (--account->num_sequences > 0) return;
  Level& level = *account->level;
  const int priority = account->priority;
  level.users.erase(level.users.find(account->user));
  if (level.users.empty()) levels_.erase(priority);
}

void WaitingQueue::add(Account* account, std::uint64_t arrival, SequenceId sequence) {
  reorder(*account, [&] {
    // Turns that a user let pass while nothing of theirs waited are not saved up.
    if (account->waiting.empty()) account->served = std::max(account->served, account->level->virtual_time);
    account->waiting.emplace(arrival, sequence);
  });
  ++size_;
}

void WaitingQueue::remove(Account* account, std::uint64_t arrival) {
  reorder(*account, [&] { account->waiting.erase(arrival); });
  --size_;
}

void WaitingQueue::add_returning(Account* account, std::uint64_t turn, SequenceId sequence) {
  account->level->returning.emplace(turn, sequence);
  ++size_;
}

void WaitingQueue::remove_returning(Account* account, std::uint64_t turn, SequenceId sequence) {
  account->level->returning.erase({turn, sequence});
  --size_;
}

std::optional<SequenceId> WaitingQueue::head() const {
  for (const auto& [priority, level] : levels_) {
    if (!level.returning.empty()) return level.returning.begin()->second;
    if (!level.order.empty()) return std::get<2>(*level.order.begin())->waiting.begin()->second;
  }
  return std::nullopt;
}

void WaitingQueue::charge(Account* account, std::int64_t tokens) {
  reorder(*account, [&] { account->served += tokens; });
  Level& level = *account->level;
  level.virtual_time += std::max<std::int64_t>(tokens / std::ssize(level.users), 1);
}

}  // namespace plimsoll::schedule
