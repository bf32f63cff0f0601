// SPDX-License-Identifier: Apache-2.0
// Where is each instruction set's table? Private to the room: the dispatcher and the tables themselves.
// Constants, safe from any thread once the program's start-up is over.
#pragma once

#include "kernels/kernels.h"

namespace plimsoll::kernels {

extern const Kernels kScalarKernels;
#if defined(__x86_64__)
extern const Kernels kAvx2Kernels;        // needs avx2, fma, f16c
extern const Kernels kAvx512Kernels;      // needs avx512 f, bw, dq, vl besides
extern const Kernels kAvx512VnniKernels;  // and avx512 vnni
extern const Kernels kAvx512Bf16Kernels;  // and avx512 bf16
#endif

}  // namespace plimsoll::kernels
