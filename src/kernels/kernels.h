// SPDX-License-Identifier: Apache-2.0
// The arithmetic: knows arrays, never models. Every function exists in a scalar form and in forms for wider
// instruction sets; select() picks at run time. The same output element is summed in the same order of K
// whatever the number of rows or threads, so results do not depend on batching. Caller owns all memory;
// functions are safe on disjoint outputs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/dtype.h"
#include "kernels/attention.h"

namespace plimsoll::kernels {

enum class Isa { kScalar, kAvx2, kAvx512, kAvx512Vnni, kAvx512Bf16 };
std::string_view to_string(Isa isa);
/// Instruction sets this processor can run, widest last. Always holds kScalar.
std::vector<Isa> available_isas();

/// True for the stored types that to_float and matmul take: f32 f16 bf16, q4_0 q4_1 q5_0 q5_1 q8_0,
/// q2_k to q6_k, iq1_s iq1_m iq2_xxs iq2_xs iq2_s iq3_xxs iq3_s iq4_nl iq4_xs, tq1_0 tq2_0, mxfp4 nvfp4.
/// Source: docs/formats/gguf_blocks.md.
bool can_read(DType dtype);

/// What the codes of a small type stand for, before any scale: 256 numbers of i8, f8_e4m3, f8_e5m2, f8_e8m0;
/// 16 of f4 (e2m1). Null for other types. Source: OCP 8-bit floating point and microscaling specifications.
const float* code_values(DType dtype);

/// Weight rows that matmul widens at once; sizes its scratch.
inline constexpr std::int64_t kScratchRows = 8;

inline constexpr int kInt8Block = 32;
/// 32 numbers in eight bits: number i stands for codes[i] * scale.
struct Int8Block {
  float scale = 0;                // largest magnitude / 127; NaN when a number is not finite
  std::int16_t sums[2] = {0, 0};  // of the first and the last 16 codes
  std::int8_t codes[32] = {};     // -127 to 127
};

/// Two blocks may hold one input more finely: under one scale, number i stands for
/// (kDigitOfTwo * upper.codes[i] + lower.codes[i]) * scale. Their products are added before they are rounded.
inline constexpr int kDigitOfTwo = 255;
inline constexpr int kLargestOfTwo = kDigitOfTwo * 127 + 127;

/// True for the block types whose weights are whole numbers times a scale: matmul_int8 takes them.
bool has_int8_products(DType dtype);

/// A panel (panels.h) times inputs: out[t, r] = sum_k x[t, k] * w[r, k] for its rows.
struct PanelProduct {
  DType dtype = DType::kBF16;
  const std::byte* panel = nullptr;
  std::int64_t columns = 0;
  std::int64_t rows = 0;  // of the panel that are in use: at most kPanelRows
  std::int64_t tokens = 0;
  int planes = 1;        // of inputs in eight bits
  float* out = nullptr;  // [tokens, out_stride], from the panel's first row on
  std::int64_t out_stride = 0;
  std::byte* scratch = nullptr;     // [panel_scratch_bytes(columns)] of this thread
  const std::byte* next = nullptr;  // a panel that will be read soon, or null
};

/// One token in a row of a recurrent state.
struct Recurrence {
  const float* key = nullptr;     // [n]
  const float* query = nullptr;   // [n]
  const float* decays = nullptr;  // [n]; null: `decay` for all
  float decay = 1;
  float value = 0;
  float beta = 1;
  bool is_delta = false;
};

/// One table of functions per instruction set.
struct Kernels {
  Isa isa;

  /// Dequantizes or widens `elements` stored numbers (whole blocks). out: [elements]
  void (*to_float)(DType dtype, const std::byte* stored, std::int64_t elements, float* out);
  /// out[i] = values[i] rounded to bf16 (nearest even).
  void (*to_bf16)(const float* values, std::int64_t elements, std::uint16_t* out);
  /// out[i] = values[i] rounded to f8_e4m3 (nearest even), at most 448 either way; NaN stays NaN.
  void (*to_e4m3)(const float* values, std::int64_t elements, std::uint8_t* out);
  /// out[i] = values[i] / scale rounded to the nearest integer, ties to even. Returns scale, the largest
  /// magnitude / 127: 0 when all are zero, NaN when one is not finite.
  float (*to_i8)(const float* values, std::int64_t elements, std::int8_t* out);

  /// out[t, r] = sum_k x[t, k] * w[r, k] for rows r in [row_begin, row_end).
  /// x: [tokens, columns], w: [rows, columns] stored as `dtype` row by row, out: [tokens, out_stride].
  /// scratch: [kScratchRows, columns] floats of the calling thread; not used, and may be null, for f32 that
  /// is aligned as floats are. `columns` fills whole blocks. A sum is the same bits for any split of rows and
  /// any number of tokens beside it.
  void (*matmul)(DType dtype, const std::byte* w, std::int64_t columns, std::int64_t row_begin,
                 std::int64_t row_end, const float* x, std::int64_t tokens, float* out,
                 std::int64_t out_stride, float* scratch);

  /// Rounds inputs for matmul_int8.
  /// values: [blocks, 32], out: [planes, blocks]; two planes: the upper, then the lower blocks.
  void (*to_int8_blocks)(const float* values, std::int64_t blocks, int planes, Int8Block* out);
  /// As matmul, of rounded inputs: exact whole sums within a group of weights under one scale, which are
  /// added in rising order; the same bits on every processor. x: [tokens, planes, columns / 32],
  /// columns a multiple of 32; w: [rows, columns]; out: [tokens, out_stride]; scratch as for matmul. Only for
  /// types of has_int8_products; null where the instruction set has no products of bytes.
  void (*matmul_int8)(DType dtype, const std::byte* w, std::int64_t columns, std::int64_t rows,
                      const Int8Block* x, std::int64_t tokens, int planes, float* out,
                      std::int64_t out_stride, float* scratch);

  /// Products of a panel of whole numbers, the same bits as matmul_int8's. x: [tokens, planes, columns / 32]
  void (*panel_int8)(const PanelProduct& product, const Int8Block* x);
  /// Of a panel of bf16: fused, k rising, one sum for each output. x: [tokens, columns]
  void (*panel_float)(const PanelProduct& product, const float* x);
  /// The same with inputs in bf16, in pairs of columns; null where the instruction set has no such products.
  void (*panel_bf16)(const PanelProduct& product, const std::uint16_t* x);

  /// out[i] = x[i] / sqrt(mean(x^2) + eps) * weight[i].  x, weight, out: [n]; out may be x.
  void (*rms_norm)(const float* x, const float* weight, std::int64_t n, float eps, float* out);
  /// out[i] = silu(gate[i]) * up[i].  [n]; out may be gate.
  void (*silu_mul)(const float* gate, const float* up, std::int64_t n, float* out);
  /// sum_i a[i] * b[i], [n].
  float (*dot_f32)(const float* a, const float* b, std::int64_t n);
  float (*dot_bf16)(const float* a, const std::uint16_t* b, std::int64_t n);
  float (*dot_e4m3)(const float* a, const std::uint8_t* b, std::int64_t n);
  float (*dot_i8)(const float* a, const std::int8_t* b, std::int64_t n);
  /// out[i] += scale * x[i], [n].
  void (*add_scaled_f32)(float scale, const float* x, std::int64_t n, float* out);
  void (*add_scaled_bf16)(float scale, const std::uint16_t* x, std::int64_t n, float* out);
  void (*add_scaled_e4m3)(float scale, const std::uint8_t* x, std::int64_t n, float* out);
  void (*add_scaled_i8)(float scale, const std::int8_t* x, std::int64_t n, float* out);

  /// out[i] = e^(scale * x[i]), [n].
  void (*exp_scaled)(float scale, const float* x, std::int64_t n, float* out);
  /// The largest of x, NaN left out; -infinity when there is none. x: [n]
  float (*largest)(const float* x, std::int64_t n);
  /// row = decay * row, then row += change * key: change is the value, or (value - row . key) * beta for
  /// delta nets. row: [n]. Returns row . query.
  float (*recur)(const Recurrence& token, std::int64_t n, float* row);

  /// See rope() and softmax() below, which call the selected table.
  void (*rope)(float* x, int heads, int head_dim, int rotary_dim, bool interleaved, const float* cos,
               const float* sin);
  void (*softmax)(float* scores, std::int64_t n);

  /// What the queries of a tile attend to in one split: a part each, which is empty where a query sees
  /// nothing of it. parts: [queries, attention_part]; scratch: attention_scratch() floats.
  void (*attend_split)(const AttentionTile& tile, std::int64_t split, float* parts, float* scratch);
  /// Adds the part of the next split that a query sees. part, into: [attention_part]
  void (*merge_parts)(const float* part, std::int64_t value_dim, float* into);
  /// out = what all merged parts say.  sink: one more score, of nothing, or null. out: [value_dim]
  void (*finish_part)(const float* part, const float* sink, std::int64_t value_dim, float* out);
};

/// The kernels of one instruction set; it must be in available_isas().
const Kernels& kernels_for(Isa isa);
/// The widest available, or what the environment variable PLIMSOLL_ISA (scalar avx2 avx512 avx512_vnni
/// avx512_bf16) names if this processor has it; asked once per process.
const Kernels& select();

/// Rotates pairs of q or k in place: (x[a], x[b]) by angle position * inverse_frequency[i].
/// x: [heads, head_dim]; cos, sin: [rotary_dim/2]; interleaved: a=2i, b=2i+1, else a=i, b=i+rotary_dim/2.
void rope(float* x, int heads, int head_dim, int rotary_dim, bool interleaved, const float* cos,
          const float* sin);

/// Turns scores into probabilities in place. [n]
void softmax(float* scores, std::int64_t n);

}  // namespace plimsoll::kernels
