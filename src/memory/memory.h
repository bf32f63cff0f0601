// SPDX-License-Identifier: Apache-2.0
// How many bytes? Weights, keys and values, buffers: every byte formula, once, per engine and version.
// The face of the room; each part has its header (kv_dtype.h beside these). Pure functions of a ModelSpec.
#pragma once

#include "memory/cache_format.h"       // IWYU pragma: export
#include "memory/embedded.h"           // IWYU pragma: export
#include "memory/embedded_layouts.h"   // IWYU pragma: export
#include "memory/engine_rules.h"       // IWYU pragma: export
#include "memory/kv_cache.h"           // IWYU pragma: export
#include "memory/llama_cpp_cache.h"    // IWYU pragma: export
#include "memory/llama_cpp_compute.h"  // IWYU pragma: export
#include "memory/llama_cpp_weights.h"  // IWYU pragma: export
#include "memory/load_quantization.h"  // IWYU pragma: export
#include "memory/quantized_weights.h"  // IWYU pragma: export
#include "memory/sglang_pool.h"        // IWYU pragma: export
#include "memory/simple_accounting.h"  // IWYU pragma: export
#include "memory/vllm_kv.h"            // IWYU pragma: export
#include "memory/vllm_layers.h"        // IWYU pragma: export
#include "memory/vllm_rules.h"         // IWYU pragma: export
#include "memory/vllm_runtime.h"       // IWYU pragma: export
#include "memory/vllm_sentences.h"     // IWYU pragma: export
#include "memory/vllm_weights.h"       // IWYU pragma: export
#include "memory/weights.h"            // IWYU pragma: export
#include "memory/workload.h"           // IWYU pragma: export
