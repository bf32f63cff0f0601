// SPDX-License-Identifier: Apache-2.0
// Inside the plan room: one row per accounting, and what both share. Pure.
#pragma once

#include <map>
#include <tuple>

#include "memory/memory.h"
#include "plan/plan.h"

namespace plimsoll::plan {

/// Remembers what the stages of a model hold, for searches that ask again and again. One model, one thread.
class WeightsMemo {
 public:
  const Result<memory::VllmWeights>& stage(const model::ModelSpec& spec,
                                           const memory::VllmWeightSettings& settings);

 private:
  // Every setting that a search may change; the model's own stay.
  using Key = std::tuple<DType, int, int, bool, bool, int, int, std::int64_t,
                         std::optional<memory::WeightFormat>, bool, memory::EncoderSplit, bool>;
  std::map<Key, Result<memory::VllmWeights>> known_;
};

/// One question: this model, there, with these settings.
struct Question {
  const Model* model = nullptr;
  std::optional<Target> target;
  Settings settings;
  memory::EngineRules rules;
  std::string engine_version;
  int machine_threads = 1;
  WeightsMemo* memo = nullptr;  // may be absent
  bool is_split = false;        // tensor-parallel GPUs, each with its own share; else the memory is one sum
};

/// The row without its levers.
Result<Row> make_row(const Question& question);
Result<Row> make_embedded_row(const Question& question);
Result<Row> make_simple_row(const Question& question);
Result<Row> make_vllm_row(const Question& question);
Result<Row> make_sglang_row(const Question& question);
Result<Row> make_llama_cpp_row(const Question& question);
/// A row that says only why it cannot be.
Row impossible_row(const Question& question, std::string cache_dtype, Finding fault);
/// The length of the longest request: asked for, or the model's default.
std::int64_t length_of(const Question& question);

/// Holds a row beside what the other release makes of the same question, and adds both to `against`.
/// Errors: those of make_row. Source: docs/formulas/vllm_budget.md, "Upgrades".
Status add_against(const Question& question, const Row& row, Against& against);
/// The releases' changes of the rules between two versions of vLLM, oldest first.
std::vector<std::pair<std::string, std::string>> rules_between(const std::string& one,
                                                               const std::string& other);

/// Tries the layouts of the question's target, of its model and settings; appends rows that fit and what is
/// rejected. Source: docs/formulas/parallel.md, "Search".
Status search_layouts(const Question& question, std::vector<Row>& rows, Search& search);
/// Cheapest first, by price or by GPU memory; then what changes least in the answers, then by requests. Fills
/// in the rows' cost.
void sort_by_cost(std::vector<Row>& rows, bool has_prices);

/// The model in the first form that fits: as published, shorter, with fewer bits; the first of them where
/// none does. Source: docs/formulas/fit.md.
Result<Row> fit_row(const Question& question);
/// What runs before what does not; as published, at full length, then by parameters, which stand beside the
/// rows.
void sort_by_fit(std::vector<std::pair<Row, std::int64_t>>& rows);

/// What could be turned, cheap to dear; what does not fit even then is left out.
std::vector<Lever> make_levers(const Question& question, const Row& row);

/// The weights' bytes over all GPUs: stored, or by formula; says in `row` which it was, and how sure.
Result<Bytes> weights_of(const Question& question, Row& row);

/// A Basis with a band around the number; its lower end is never below 0.
Basis basis_with_bar(std::string field, std::string kind, Bytes middle, Bytes half, std::string source);
/// Field of a part's bytes, as in JSON.
std::string part_field(const Row& row, std::string_view part);
/// The weights of the finished row, wherever they stand, unless they are exact.
void add_weights_basis(Row& row, std::int64_t gpus);
/// The pool of the finished row and everything that follows from its size, with `row.error_bar`.
void add_pool_basis(Row& row, const std::string& kind, const std::string& source);

/// No engine: the choice behind the simple accounting.
facts::EngineChoice any_engine();

/// The rows of the document's table and the figures above it.
Result<Plan> make_document_table(const facts::EngineChoice& engine);
Result<ModelFigures> figures_of(const Model& model);

}  // namespace plimsoll::plan
