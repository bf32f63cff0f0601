// SPDX-License-Identifier: Apache-2.0
// What is known that no file tells: GPUs, engines, what they support and ask for, licences, the catalogue of
// model configs. The face of the room; each part has its header. Tables are constants, look-ups pure; any
// thread may call.
#pragma once

#include "facts/attention_kernels.h"   // IWYU pragma: export
#include "facts/catalogue.h"           // IWYU pragma: export
#include "facts/compute_capability.h"  // IWYU pragma: export
#include "facts/engines.h"             // IWYU pragma: export
#include "facts/environment.h"         // IWYU pragma: export
#include "facts/gpus.h"                // IWYU pragma: export
#include "facts/licenses.h"            // IWYU pragma: export
#include "facts/llama_cpp.h"           // IWYU pragma: export
#include "facts/sglang.h"              // IWYU pragma: export
#include "facts/support.h"             // IWYU pragma: export
#include "facts/unstated_parts.h"      // IWYU pragma: export
#include "facts/vllm_encoders.h"       // IWYU pragma: export
#include "facts/vllm_runtime.h"        // IWYU pragma: export
