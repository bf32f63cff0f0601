// SPDX-License-Identifier: Apache-2.0
// Inside the plan room: one row per accounting, and what both share. Pure.
#pragma once

#include "memory/memory.h"
#include "plan/plan.h"

namespace plimsoll::plan {

/// One question: this model, there, with these settings.
struct Question {
  const Model* model = nullptr;
  std::optional<Target> target;
  Settings settings;
  memory::EngineRules rules;
  std::string engine_version;
  int machine_threads = 1;
  bool is_split = false;  // tensor-parallel GPUs, each with its own share; else the memory is one sum
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
