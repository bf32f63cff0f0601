// SPDX-License-Identifier: Apache-2.0
// Which model did a recorded start of vLLM run, on what, with which flags?
// Turns rows of startup_logs.jsonl into requests of the planner by data/startup_models.tsv; for the fit of
// constants and for tests. Plain values; any thread may call.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "plan/plan.h"

namespace plimsoll::starts {

/// Flags that a record does not state and its log shows.
struct Deduced {
  Json settings;  // release cache_type prefix_caching draft_tokens batched_tokens block_size blocks; none: not modelled
  std::string reason;
};

/// data/startup_models.tsv. Keys are records' ids, or models as records name them.
struct Book {
  std::map<std::string, plan::Model> models;
  std::map<std::string, std::string> not_fitted;       // row -> why constants are not fitted on it
  std::map<std::string, std::string> unknown_weights;  // model -> why the catalogue's config does not tell them
  std::map<std::string, std::string> not_planned;      // row or model -> why its cache does not follow from flags
  std::map<std::string, Deduced> of_model;             // model -> flags of all its starts
  std::map<std::string, Deduced> deduced;              // row -> what its tokens follow from
  std::map<std::string, std::string> not_foretold;     // row -> why its failure does not follow from flags
};

/// Errors: kMalformed for a file, lines, JSON and configs that cannot be read, and models that the catalogue does
/// not hold.
Result<Book> read_book(const std::string& path);

/// Between the tabs of a line.
std::vector<std::string> cells_of(const std::string& line);

/// The rows of `path` in their order; lines that are no JSON are left out.
std::vector<Json> read_rows(const std::string& path);

/// The release to plan with: "0.7.x(V0)" is the last of its line, "0.2x" the first of its decade. Nothing for
/// builds that do not tell their age.
std::optional<std::string> release_of(const std::string& version);

/// The GPU of a row: its name as far as the catalogue has it, memory as the log, the budget, the
/// catalogue or the size in its name tells it. Nothing where none of them does.
std::optional<plan::Target> target_of(const Json& row);

/// Model, engine and flags of a row; no target. Nothing for other engines and unknown models. Where the age is
/// not known, the newest release is taken.
std::optional<plan::Request> request_of(const Json& row, const Book& book);

/// Sets the flags of `deduced`.
void apply(const Deduced& deduced, plan::Request& request);

}  // namespace plimsoll::starts
