// SPDX-License-Identifier: Apache-2.0
// The embeddings of engine/paged_engine.h.
#include <algorithm>
#include <cmath>

#include "engine/paged_engine.h"

namespace plimsoll::engine {

// Hidden states of what was computed, for the sequences that are pooled: all of them, or none.
void PagedEngine::pool_rows() {
  std::int64_t first_row = 0;
  for (const auto& work : step_.work) {
    Pooler& pooler = *sequences_.at(work.sequence).pooler;
    const Pooler::Rows rows = pooler.wanted(work.first_position, work.num_tokens);
    if (rows.count > 0)
      pooler.add(rows.first, graph_.final_states(first_row + rows.first - work.first_position, rows.count));
    first_row += work.num_tokens;
    if (work.is_last_chunk) end_with_embedding(work.sequence);
  }
}

void PagedEngine::end_with_embedding(schedule::SequenceId id) {
  const Sequence& sequence = sequences_.at(id);
  Output& output = outputs_.add(sequence.requests.front());
  output.cached_prompt_tokens = scheduler_.cached_prompt_tokens(id);
  output.embedding = sequence.pooler->embedding(sequence.embedding);
  output.finish = FinishReason::kStop;
  if (!std::ranges::all_of(output.embedding, [](float value) { return std::isfinite(value); })) {
    output.embedding.clear();
    output.finish = FinishReason::kError;
    output.error = "the model produced no finite embedding; its weights may hold NaN";
  }
  requests_.erase(output.request);
  scheduler_.finish(id);
  sequences_.erase(id);
}

}  // namespace plimsoll::engine
