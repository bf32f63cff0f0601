// SPDX-License-Identifier: Apache-2.0
// Gathers the rows of a trace while a reader goes through its file: bounds, rows that are left out, order.
// One thread.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "workload/trace.h"

namespace plimsoll::workload {

/// Times are kept in whole nanoseconds until the first is known: seconds since 1970 as doubles would be off
/// by tenths of a microsecond.
struct TraceRow {
  std::int64_t at_ns = 0;
  std::int64_t input_tokens = 0;
  std::int64_t output_tokens = 0;
  std::vector<std::int64_t> block_ids;
};

class TraceRows {
 public:
  explicit TraceRows(Trace& trace) : trace_(&trace) {}

  /// Errors: kMalformed when the row's lengths or blocks are out of bounds, or there are too many.
  Status add(const TraceRow& row, const std::string& where);
  /// Puts the rows in order of time and counts from the earliest. Errors: kMalformed when there is none.
  Status finish(const std::string& name);

 private:
  Trace* trace_;
  std::vector<std::int64_t> times_ns_;  // beside trace_->requests
};

/// "2023-11-16 18:15:46.6805900", with T for the blank, Z or +00:00 behind; nanoseconds since 1970.
std::optional<std::int64_t> nanoseconds_of_date(std::string_view text);

/// A number of units from 0 to 4e9 s, in nanoseconds.
std::optional<std::int64_t> nanoseconds_of(double amount, double unit_s);

}  // namespace plimsoll::workload
