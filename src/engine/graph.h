// SPDX-License-Identifier: Apache-2.0
// One forward pass: rows of tokens in, logits out. Reads the spec's layers; keys and values go through the
// block tables. Buffers are laid out once, for the largest step; a pass allocates nothing of its own. One
// thread calls, a team computes.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/result.h"
#include "base/thread_pool.h"
#include "engine/kv_pool.h"
#include "engine/rope.h"
#include "engine/router.h"
#include "engine/weights.h"
#include "kernels/kernels.h"
#include "memory/embedded.h"
#include "model/model.h"

namespace plimsoll::engine {

/// One token of one sequence in a step.
struct Row {
  std::int32_t token = 0;
  std::int64_t position = 0;
  bool stays_within = false;  // turns by RopeTables::within
  std::int64_t length = 0;    // of its text, all of which is in this step (encoders)
  std::span<const std::span<const std::int32_t>> tables;  // [groups]: the sequence's block tables
};

class Graph {
 public:
  /// `workspace` gives the size of every buffer: what was planned is what is allocated.
  Graph(const model::ModelSpec& spec, ModelWeights weights, RopeTables ropes, KvPool& pool,
        const memory::Workspace& workspace, ThreadPool& team);

  /// Computes all rows (at most max_rows): writes their keys and values and leaves the final hidden state of
  /// each. Rows of one sequence stand in the order of their positions; earlier positions are in the pool
  /// already or in this step.
  void forward(std::span<const Row> rows);

  /// Logits of some rows of the last forward(): at most max_logit_rows at once.
  /// Returns: [rows.size(), vocab], valid until the next call.
  std::span<const float> logits(std::span<const std::int32_t> rows);

  /// Hidden states behind the last norm of consecutive rows of the last forward().
  /// Returns: [count, hidden], valid until the next call.
  std::span<const float> final_states(std::int64_t first, std::int64_t count);

  /// Rows of logits that one call gives.
  int max_logit_rows() const { return max_logit_rows_; }
  const RopeTables& ropes() const { return ropes_; }
  Bytes weight_bytes() const { return weights_.stored; }
  /// Of the file that panels are mapped from; the model's own is the artifact's.
  std::optional<Error> cut_error() const { return weights_.kept_panels.cut_error(); }
  /// Bytes of all buffers of this object, as allocated.
  Bytes buffer_bytes() const;

 private:
  struct Product;  // one matrix times all rows
  struct Angles;   // of one row
  struct Rounded;  // inputs of matrices

  void multiply(std::span<const Product> products, const float* input, std::int64_t num_rows);
  void multiply(std::span<const Product> products, const Rounded& input, std::int64_t num_rows);
  void multiply_some(const Product& product, std::int64_t begin, std::int64_t end, const Rounded& input,
                     std::int64_t num_rows, int thread);
  std::int64_t rows_per_chunk(const StoredMatrix& matrix, std::int64_t num_rows) const;
  bool takes_codes(const StoredMatrix& matrix) const;
  /// Inputs as the matrices want them, in codes_; matrices that want another form read floats.
  Rounded round_inputs(std::span<const Product> products, const float* input, std::int64_t num_rows);
  void embed_row(const Row& row, std::int64_t r);
  /// Each block reads `input` [rows, hidden] and leaves [rows, hidden] in `output`.
  void mixer_block(std::span<const Row> rows, int layer, const float* input, float* output);
  void attention_block(std::span<const Row> rows, int layer, const float* input, float* output);
  Angles angles_of(std::int64_t r, bool has_window) const;
  void prepare(const Row& row, std::int64_t r, int layer);
  void normalize_heads(const model::Attention& attention, const NormWeights& norm, int heads,
                       float* values) const;
  void turn(std::int64_t r, const model::Attention& attention);
  void store(const Row& row, std::int64_t r, int layer);
  struct AttentionCall;  // what the steps of an attention_block share
  struct Tile;           // queries that read the same keys and values together
  /// Rows of one sequence that are attended for together.
  struct RowTile {
    std::int64_t first = 0, count = 0;
    kernels::AttentionRange seen;  // positions
    std::int64_t spans = 0;        // that threads share; 0: each of its items is whole
    std::int64_t parts = 0;        // where in parts_
    std::int64_t first_item = 0;
  };
  void attend(std::span<const Row> rows, const AttentionCall& call);
  void cut_into_tiles(std::span<const Row> rows, const AttentionCall& call);
  std::int64_t share_spans(const AttentionCall& call);
  void fill_tile(std::span<const Row> rows, const AttentionCall& call, const RowTile& from, int heads,
                 Tile& tile);
  void fill_queries(std::span<const Row> rows, const AttentionCall& call, const RowTile& from, int heads,
                    Tile& tile);
  float* parts_of(const AttentionCall& call, const RowTile& tile, int heads);
  void attend_item(std::span<const Row> rows, const AttentionCall& call, std::int64_t item, int thread);
  void gate(const AttentionCall& call, const RowTile& tile, int heads);
  void latent_block(std::span<const Row> rows, int layer, const float* input, float* output);
  float latent_eps(const model::Latent& latent) const;
  void finish_latent(const Row& row, std::int64_t r, int layer);
  void latent_head(std::span<const Row> rows, int layer, int head, int thread);
  void absorb_keys(std::int64_t num_rows, int layer, int head, float* queries, float* packed, float* scratch);
  void attend_latent(std::span<const Row> rows, int layer, const float* queries, float* sums, float* scratch);
  struct StateCall;  // what the steps of a state_block share
  /// Rows of one sequence in a step.
  struct Run {
    std::size_t first = 0, count = 0;
  };
  void find_runs(std::span<const Row> rows);
  /// `adds`: to what `output` holds.
  void state_block(std::span<const Row> rows, int layer, const float* input, float* output, bool adds);
  void project_state(const StateCall& call, const float* input, std::int64_t num_rows);
  void multiply_pair(const StateCall& call, const StoredMatrix& first, const StoredMatrix& second,
                     const float* input, std::int64_t at, std::int64_t num_rows);
  void scale_state_input(const StateCall& call, std::int64_t r);
  void convolve(const StateCall& call, std::span<const Row> rows, std::int64_t first_row, std::int64_t begin,
                std::int64_t end);
  void select(const StateCall& call, std::int64_t num_rows);
  void prepare_recurrence(const StateCall& call, std::int64_t r);
  kernels::Recurrence recurrence_of(const StateCall& call, std::int64_t r, std::int64_t i,
                                    float* decays) const;
  void recur(const StateCall& call, std::span<const Row> rows, std::int64_t first_row, std::int64_t begin,
             std::int64_t end, int thread);
  void finish_state(const StateCall& call, std::int64_t r);
  void gate_short(const StateCall& call, std::int64_t r, std::int64_t gate, float* out);
  void allocate_experts();
  bool is_fused(const FfnWeights& weights, const model::Ffn& ffn) const;
  Rounded gate_panels(const FfnWeights& weights, const model::Ffn& ffn, const float* input,
                      std::int64_t num_rows);
  void gate_rows(const FfnWeights& weights, const model::Ffn& ffn, const float* input, std::int64_t num_rows);
  void feed_forward(const FfnWeights& weights, const model::Ffn& ffn, const float* input,
                    std::int64_t num_rows, float* output);
  void sort_by_expert(std::int64_t num_rows, const model::Ffn& ffn);
  void mixture(std::int64_t num_rows, int layer, const float* input, float* output);
  void add_shared_experts(std::int64_t num_rows, int layer, const float* input, float* output);
  void ffn_block(std::int64_t num_rows, int layer, const float* input, float* output);
  void layer_in_turn(std::span<const Row> rows, int layer);
  void layer_side_by_side(std::span<const Row> rows, int layer);
  void normalize(const NormWeights& norm, const float* input, float* output) const;
  /// The rows of `input` with the norm, or `input` itself where there is none.
  const float* normalized(const NormWeights& norm, const float* input, std::int64_t num_rows);
  /// Normalizes an update where a norm stands behind the block, and adds it to the residual. `input`: what
  /// the block read.
  void add_to_residual(const NormWeights& post_norm, const model::Residual& residual, const float* input,
                       float* update, std::int64_t num_rows);

  /// Buffers of mixtures; empty without.
  struct Mixture {
    std::vector<float> gathered;        // [max_rows, hidden]: rows of one expert
    std::vector<float> output;          // [max_rows, hidden]: what it makes of them
    std::vector<float> scores;          // [max_rows, experts]
    std::vector<ChosenExpert> chosen;   // [max_rows, per token]
    std::vector<std::int32_t> places;   // [max_rows * per token]: indices into chosen, by expert
    std::vector<std::int32_t> offsets;  // [experts + 1]: of each expert's places
  };

  /// codes_ as inputs in bf16: [rows, columns].
  std::uint16_t* pairs() { return reinterpret_cast<std::uint16_t*>(codes_.data()); }

  const model::ModelSpec& spec_;
  ModelWeights weights_;
  RopeTables ropes_;
  KvPool& pool_;
  const kernels::Kernels& kernels_;
  ThreadPool& team_;
  int block_size_;
  int max_logit_rows_ = 0;
  std::int64_t query_stride_ = 0;     // widest q of any layer, with its gates; elements
  std::int64_t attended_stride_ = 0;  // widest output of heads
  std::int64_t key_stride_ = 0, value_stride_ = 0;
  std::int64_t attention_stride_ = 0;  // of a thread's buffers
  std::int64_t scratch_stride_ = 0;
  std::int64_t latent_stride_ = 0;
  std::int64_t angle_stride_ = 0;  // of one row
  std::int64_t state_stride_ = 0;

  std::vector<float> residual_;   // [max_rows, hidden]
  std::vector<float> normed_;     // [max_rows, hidden]
  std::vector<float> block_out_;  // [max_rows, hidden]
  std::vector<float> query_;      // [max_rows, query_stride]: queries, then gates
  std::vector<float> key_;        // [max_rows, key_stride]; of latent layers the vector of a token
  std::vector<float> value_;      // [max_rows, value_stride]; of latent layers the compressed query
  std::vector<float> attended_;   // [max_rows, attended_stride]
  std::vector<float> latents_;    // [threads, max_rows]: of one head, queries and sums in the latent space
  std::vector<float> gate_;       // [max_rows, intermediate]
  std::vector<float> up_;         // [max_rows, intermediate]
  std::vector<kernels::Int8Block> codes_;  // [max_rows, planes, columns / 32]: or bf16, or empty
  std::vector<float> logits_;              // [max_logit_rows, vocab]
  std::vector<float> angles_;  // [max_rows, 2, rotary_dim/2]: cosines, sines; then those of windows
  std::vector<float> states_;  // [max_rows, state_stride]: memory::StateWidths
  std::vector<Run> runs_;      // of the current step
  Mixture mixture_;
  std::vector<RowTile> tiles_;    // of the current layer
  std::vector<float> attention_;  // [threads, attention_stride]: kernels::attention_scratch()
  std::vector<float> parts_;      // of tiles whose spans threads share: [spans, queries, attention_part]
  std::vector<float> scratch_;    // [threads, kScratchRows, columns]
};

}  // namespace plimsoll::engine
