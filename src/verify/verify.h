// SPDX-License-Identifier: Apache-2.0
// Does the engine's log agree with the plan, and if not, why?
// The face of the room. Pure: the caller reads the log into a LogReader and passes plan and measurements as
// documents. Values only; any thread may call.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "verify/log_reader.h"

namespace plimsoll::verify {

struct Delta {
  std::string part;  // weights kv_cache kv_tokens max_concurrency
  double plan = 0, log = 0;
  std::optional<std::int64_t> difference_bytes;  // log - plan; absent where no bytes can be told
  std::int64_t error_bar_bytes = 0;              // the plan's, and half of the log's last digit
  bool is_exact = true;                          // both are whole numbers
  bool within_error_bar = false;
};

struct Cause {
  std::string id;
  double likelihood = 0;  // 0 to 1, a judgement
  std::int64_t explains_bytes = 0;
  std::string evidence, fix;
};

/// One quantity as predicted, logged and measured; what is not known is absent.
struct Comparison {
  std::string quantity, unit;
  std::optional<double> predicted, logged, measured;
};

/// What the planner says of the settings that the log states; without a plan only.
struct OwnPlan {
  std::optional<Json> plan;  // its row
  std::string missing;       // why there is none
  std::vector<Delta> deltas;
  std::vector<Cause> causes;
};

struct Report {
  Log log;
  std::optional<Json> plan;  // the plan's row that was compared
  std::vector<Delta> deltas;
  std::vector<Cause> causes;
  std::vector<Comparison> comparisons;  // with measurements only
  std::optional<OwnPlan> from_log;
  std::optional<std::string> disagreement;  // about fitting at all: what the plan said and what happened

  /// A known engine's line stood in the log.
  bool is_recognised() const;
  /// The last start went well, and every delta is within its error bar. Without a plan there is no delta.
  bool agrees() const;
  /// The same as an answer; absent when there is nothing to compare: no plan, or no line of an engine.
  std::optional<bool> answer() const;
};

/// Compares the log's last start with the first row of `plan` (a plimsoll.plan/1 document), and sets the
/// measured figures of `bench` (a result of `plimsoll bench`) beside them. Both documents may be left out.
/// Errors: kMalformed when a document is not what it should be, naming its pointer.
Result<Report> compare(Log log, const Json* plan, const Json* bench);

/// The document plimsoll.verify/1.
Json to_json(const Report& report);
/// The same for people.
std::string to_text(const Report& report);

}  // namespace plimsoll::verify
