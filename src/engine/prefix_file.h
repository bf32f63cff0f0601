// SPDX-License-Identifier: Apache-2.0
// How does the prefix cache outlive the process? One file per model and layout in a folder of the user's:
// written when the engine ends, read before it takes its first request. A file that is damaged, or of another
// model, is never used. One thread calls. Source: docs/formats/prefix_cache.md.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "artifact/artifact.h"
#include "base/result.h"
#include "engine/kv_pool.h"
#include "engine/rope.h"
#include "memory/embedded_cache.h"
#include "schedule/schedule.h"

namespace plimsoll::engine {

/// Names what keys and values depend on: names, shapes, types, sizes, times and samples of the weights, the
/// config, the angles that keys turn by, the layout of the pool, the arithmetic of this program on this
/// processor, `quantization` at load (its name, or nothing). 64 hex digits.
std::string prefix_identity(const artifact::Artifact& artifact, const RopeTables& ropes,
                            const memory::EmbeddedCache& cache, std::string_view quantization = {});

/// Where the file of an identity lies.
std::string prefix_path(const std::string& folder, const std::string& identity);

/// Writes what the prefix cache holds that no sequence uses; a file that is there is replaced when the new
/// one is complete. Contents under a key of more than a MiB (a salt out of a request) are left out.
/// Returns how many tokens it holds. Errors: kUsage when the folder cannot be made or
/// written to.
Result<std::int64_t> save_prefixes(const std::string& folder, const std::string& identity,
                                   const schedule::Scheduler& scheduler, const KvPool& pool);

/// Fills the prefix cache of a scheduler that has had no sequence yet. Returns how many tokens were taken; 0
/// when there is no file. Errors: kMalformed for a file that is damaged or not what its name says: nothing is
/// taken then.
Result<std::int64_t> load_prefixes(const std::string& folder, const std::string& identity,
                                   std::int64_t vocab_size, schedule::Scheduler& scheduler,
                                   const KvPool& pool);

}  // namespace plimsoll::engine
