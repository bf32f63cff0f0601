// SPDX-License-Identifier: Apache-2.0
// Built with this instruction set's flags (flags.cmake); reached only on processors that have it.
#include "kernels/avx2_float_panels.h"
#include "kernels/avx512_bf16_panels.h"
#include "kernels/simd_ops.h"
#include "kernels/tables.h"
#include "kernels/vec_avx512.h"

namespace plimsoll::kernels {

constinit const Kernels kAvx512Bf16Kernels =
    simd_kernels<Avx512>(Isa::kAvx512Bf16, {vnni_panel_int8, avx2_panel_float, bf16_panel_pairs});

}  // namespace plimsoll::kernels
