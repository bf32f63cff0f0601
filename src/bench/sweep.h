// SPDX-License-Identifier: Apache-2.0
// Which loads are tried one after the other: --sweep names them, --search finds the largest that meets the
// goals. Decides only; runs nothing. Pure values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "bench/bench.h"

namespace plimsoll::bench {

/// What is varied.
enum class LoadAxis { kConcurrency, kRate };
/// concurrency rate
std::string_view to_string(LoadAxis axis);

struct Sweep {
  LoadAxis axis = LoadAxis::kConcurrency;
  std::vector<double> values;  // whole for concurrency
};
/// "concurrency=1,2,8..64" or "rate=0.5,1": A..B is A, 2A, 4A, ... below B, then B. Nothing when empty.
/// Errors: kUsage, also for more than 100 values.
Result<std::optional<Sweep>> parse_sweep(const std::string& text);

struct SearchRange {
  LoadAxis axis = LoadAxis::kConcurrency;
  double least = 1;
  double most = 1;
};
/// "concurrency=1..64" or "rate=0.5..50". Nothing when empty. Errors: kUsage.
Result<std::optional<SearchRange>> parse_search(const std::string& text);

/// The options of one run at `value`; run number `index` has prompts and arrivals of its own (another seed),
/// so that no prefix cache knows them from the run before.
Options at_load(const Options& options, LoadAxis axis, double value, std::int64_t index);
/// "8", "0.5": as it stands in tables and file names.
std::string load_text(LoadAxis axis, double value);

/// Largest value that meets the goals: doubles from the least one until a value misses or the most is
/// reached, then halves the gap between the largest that met and the smallest that missed, until the gap is
/// within `tolerance` of the former (for concurrency also until they are neighbours).
class Search {
 public:
  Search(const SearchRange& range, double tolerance) : range_(range), tolerance_(tolerance) {}
  /// The value to try; nothing when the answer is known.
  std::optional<double> next() const;
  /// What came of trying next().
  void tell(bool has_met);
  std::optional<double> best() const { return best_; }              // nothing: even the least value missed
  std::optional<double> first_miss() const { return first_miss_; }  // nothing: even the most value met

 private:
  SearchRange range_;
  double tolerance_;
  std::optional<double> best_;
  std::optional<double> first_miss_;
};

/// The answer in a sentence or two: the value, its first miss, and what bounds them.
std::string answer(const SearchRange& range, const Search& search, double goodput_share);

/// Good requests among all that were sent, failures included. Nothing when none was sent.
std::optional<double> good_share(const Summary& summary);

/// One run of a sweep or search, as the closing table shows it.
struct Step {
  LoadAxis axis = LoadAxis::kConcurrency;
  double value = 0;
  Summary summary;
  bool has_goals = false;
};
/// The closing table: a line for each step, a mark where its figures need a second look, and the marks'
/// meanings below.
std::string to_table(const std::vector<Step>& steps);

}  // namespace plimsoll::bench
