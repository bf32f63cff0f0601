// SPDX-License-Identifier: Apache-2.0
#include "schedule/waiting_queue.h"

#include <gtest/gtest.h>

#include "tests/schedule/requests.h"

namespace plimsoll::schedule {
namespace {

// Admits the head, charging its user.
SequenceId admit(WaitingQueue& queue, const std::map<SequenceId, WaitingQueue::Account*>& accounts,
                 std::int64_t tokens) {
  const SequenceId id = *queue.head();
  queue.remove(accounts.at(id), id);
  queue.charge(accounts.at(id), tokens);
  return id;
}

TEST(WaitingQueue, UsersTakeTurnsByTheTokensTheyWereGiven) {
  WaitingQueue queue;
  std::map<SequenceId, WaitingQueue::Account*> accounts;
  for (SequenceId id = 1; id <= 9; ++id) {
    accounts[id] = queue.join(0, id <= 6 ? "many" : "few");
    queue.add(accounts[id], id, id);
  }
  std::vector<SequenceId> order;
  while (queue.head()) order.push_back(admit(queue, accounts, 10));
  EXPECT_EQ(order, (std::vector<SequenceId>{1, 7, 2, 8, 3, 9, 4, 5, 6}));
  EXPECT_EQ(queue.size(), 0);
}

TEST(WaitingQueue, WhatWasNotUsedIsGivenBack) {
  WaitingQueue queue;
  std::map<SequenceId, WaitingQueue::Account*> accounts;
  for (SequenceId id = 1; id <= 5; ++id) {
    accounts[id] = queue.join(0, id % 2 ? "odd" : "even");
    queue.add(accounts[id], id, id);
  }
  EXPECT_EQ(admit(queue, accounts, 1000), 1u);
  EXPECT_EQ(admit(queue, accounts, 100), 2u);
  queue.leave(accounts[1], 990);
  EXPECT_EQ(*queue.head(), 3u) << "10 tokens were used, against 100";
}

TEST(WaitingQueue, PrioritiesGoFirstAndReturningOnesBeforeNewOnes) {
  WaitingQueue queue;
  auto* const low = queue.join(5, "a");
  auto* const high = queue.join(-1, "b");
  queue.add(low, 1, 1);
  queue.add(high, 2, 2);
  EXPECT_EQ(*queue.head(), 2u);
  queue.add_returning(queue.join(5, "c"), 7, 3);
  queue.remove(high, 2);
  EXPECT_EQ(*queue.head(), 3u);
  queue.leave(high, 0);
  EXPECT_EQ(queue.size(), 2);
}

TEST(WaitingQueue, LateUsersDoNotPassForEver) {
  WaitingQueue queue;
  std::map<SequenceId, WaitingQueue::Account*> accounts;
  for (SequenceId id : {1, 2}) {
    accounts[id] = queue.join(0, "patient");
    queue.add(accounts[id], id, id);
  }
  EXPECT_EQ(admit(queue, accounts, 100), 1u);
  SequenceId next = 3;
  for (; *queue.head() != 2 && next < 1000; ++next) {  // one new user after another
    accounts[next] = queue.join(0, std::to_string(next));
    queue.add(accounts[next], next, next);
    if (*queue.head() == next) {
      admit(queue, accounts, 20);
      queue.leave(accounts[next], 0);
    }
  }
  EXPECT_LE(next, 3 + 100 / (20 / 2));
}

TEST(WaitingQueue, TurnsThatNobodyTookAreNotSavedUp) {
  WaitingQueue queue;
  std::map<SequenceId, WaitingQueue::Account*> accounts;
  auto* const idle = queue.join(0, "idle");  // runs one sequence and has no other
  for (SequenceId id = 1; id <= 20; ++id) {
    accounts[id] = queue.join(0, "busy");
    queue.add(accounts[id], id, id);
  }
  for (int i = 0; i < 10; ++i) admit(queue, accounts, 10);
  for (SequenceId id = 30; id < 50; ++id) {
    accounts[id] = idle;
    queue.add(idle, id, id);
  }
  int of_idle = 0;
  for (int i = 0; i < 14; ++i) of_idle += admit(queue, accounts, 10) >= 30;
  EXPECT_LE(of_idle, 5 + 5) << "half of what it missed, then every other";
}

TEST(Users, AreAskedInTurnBySchedulerToo) {
  Options options = small_pool(64);
  options.max_num_seqs = 2;
  Scheduler scheduler(options);
  for (SequenceId id = 1; id <= 5; ++id) {
    Request request = asked(id, counting(0, 4), 8);
    request.user = id < 5 ? "many" : "one";
    ASSERT_TRUE(scheduler.add(std::move(request)));
  }
  EXPECT_EQ(ids(run_step(scheduler)), (std::vector<SequenceId>{1, 5}));
}

}  // namespace
}  // namespace plimsoll::schedule
