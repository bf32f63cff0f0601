// SPDX-License-Identifier: Apache-2.0
// How far is the run? A line for the terminal from the run's counters alone. One thread.
#pragma once

#include <cstdint>
#include <deque>
#include <string>

#include "bench/bench.h"

namespace plimsoll::bench {

class ProgressText {
 public:
  /// Takes in where the run stands; some times a second.
  void note(const Progress& progress);
  /// "12/64 requests, 4 running, 310.0 chunks/s, 1 failed, 3.20 s, 14 s left": chunks with tokens of the last
  /// 5 s; what is not known is left out.
  std::string text() const;

 private:
  Progress last_;
  std::deque<Progress> recent_;  // of the last 5 s and the one before
};

}  // namespace plimsoll::bench
