// SPDX-License-Identifier: Apache-2.0
// Random traffic for the scheduler as data: a list of events that can be played, cut to a short one that
// still fails, and printed as a test. What an event does depends on its own fields and on who is there, so
// that any part of a trace is a trace.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "schedule/schedule.h"

namespace plimsoll::schedule {

enum class EventKind {
  kAdd,
  kCancel,  // one of those who are there
  kFork,    // one of those who run
  kStep,    // plan, compute, complete; and all that was planned ahead before it
  kPlan,    // plan ahead
};

struct Event {
  EventKind kind = EventKind::kStep;
  int which = 0;  // kCancel, kFork: whom, modulo their number; kAdd: tells its own tokens apart
  int prompt = 0, shared = 0, family = 0;  // the first `shared` tokens are those of the family
  int announced = 0, generated = 0;        // tokens it may generate, and those after which it ends
  int priority = 0, user = 0, salt = 0, adapter = 0, image = 0;
};

struct Trace {
  Options options;
  std::vector<Event> events;
};

/// The same for the same numbers on every machine.
Trace make_trace(std::uint32_t seed, int num_events);

/// Removes and lessens events while `fails` says yes; `fails(trace)` is true.
Trace shrink(Trace trace, const std::function<bool(const Trace&)>& fails);

/// A test that plays it, ready to be pasted.
std::string as_test(const Trace& trace);

std::vector<TokenId> prompt_of(const Event& event);
/// What the model says at a position: half of all sequences go on as their family does.
TokenId generated_token(const Event& event, std::int64_t position);

}  // namespace plimsoll::schedule
