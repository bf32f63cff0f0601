// SPDX-License-Identifier: Apache-2.0
// How many bytes of the KV pool does one sequence of so many tokens really occupy? Runs the sequence and asks
// the system which pages of the pool are resident. One thread calls.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "serve/loaded_model.h"

namespace plimsoll::serve {

struct KvMeasurement {
  Tokens tokens;
  Bytes resident;                   // that the sequence added to the resident pages of the pool
  Bytes bytes_per_token;            // as the engine lays it out
  std::optional<std::string> kind;  // full or sliding when all layers are of one kind
};

/// Loads the model once per length, with a pool that holds just that sequence, and computes it.
/// Errors: those of load_model; kUsage when a length is below 1 or beyond the model's context.
Result<std::vector<KvMeasurement>> measure_kv(const LoadOptions& options,
                                              const std::vector<std::int64_t>& lengths);

/// The document of `serve --measure --format json`.
Json to_json(const std::vector<KvMeasurement>& measurements, const std::string& model);

}  // namespace plimsoll::serve
