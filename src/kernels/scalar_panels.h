// SPDX-License-Identifier: Apache-2.0
// Products of panels, the plain form: the reference of the wider ones, bit for bit, and all there is on other
// processors. Pure functions; the caller owns all memory.
#pragma once

#include "kernels/kernels.h"

namespace plimsoll::kernels {

/// The fields of Kernels of the same names.
void scalar_panel_int8(const PanelProduct& product, const Int8Block* x);
void scalar_panel_float(const PanelProduct& product, const float* x);

}  // namespace plimsoll::kernels
