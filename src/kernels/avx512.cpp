// SPDX-License-Identifier: Apache-2.0
// Built with this instruction set's flags (flags.cmake); reached only on processors that have it.
#include "kernels/avx2_float_panels.h"
#include "kernels/avx2_panels.h"
#include "kernels/simd_ops.h"
#include "kernels/tables.h"
#include "kernels/vec_avx512.h"

namespace plimsoll::kernels {

constinit const Kernels kAvx512Kernels =
    simd_kernels<Avx512>(Isa::kAvx512, {avx2_panel_int8, avx2_panel_float, nullptr});

}  // namespace plimsoll::kernels
