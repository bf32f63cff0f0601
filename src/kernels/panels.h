// SPDX-License-Identifier: Apache-2.0
// How do matrices lie for the fastest products? In panels of 32 rows, whose numbers stand in the order in
// which they are multiplied, so that memory is read once and in rising addresses. Codes and scales are the
// stored ones, moved and never rounded. The layout is the same for every instruction set. Caller owns all
// memory; functions are safe on disjoint outputs. Source: docs/formats/panels.md.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/dtype.h"
#include "kernels/kernels.h"

namespace plimsoll::kernels {

inline constexpr std::int64_t kPanelRows = 32;
/// Where a panel begins, and every vector in it.
inline constexpr std::int64_t kPanelAlignment = 64;

/// True for the types that have a panel form: bf16, q4_0, q4_1, q8_0, q4_k, q6_k.
bool has_panels(DType dtype);
/// Whether rows of `columns` numbers fill what the form shares: whole blocks, pairs of bf16.
bool fits_panels(DType dtype, std::int64_t columns);
/// Bytes of one panel, whatever of its rows are in use; a multiple of kPanelAlignment. Nothing is lost to
/// padding but in a matrix's last panel, and 2 % in q4_k.
std::int64_t panel_bytes(DType dtype, std::int64_t columns);

/// Moves up to 32 stored rows into a panel. rows: [kPanelRows] stored rows; null is a row of zeros.
void pack_panel(DType dtype, const std::byte* const* rows, std::int64_t columns, std::byte* panel);

/// Bytes of scratch that a thread needs for a product with panels of so many columns.
constexpr std::int64_t panel_scratch_bytes(std::int64_t columns) {
  return columns * 96;
}

}  // namespace plimsoll::kernels
