// SPDX-License-Identifier: Apache-2.0
// How many bytes of the KV pool does one sequence of so many tokens really occupy? Stores a sequence and
// asks the system which pages of the pool are resident. One thread calls.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "serve/loaded_model.h"

namespace plimsoll::serve {

struct KvMeasurement {
  Tokens tokens;
  int block_size = 0;
  std::vector<engine::ResidentKv> kinds;  // pages of the pool that hold memory once the sequence is stored
  Bytes resident() const;                 // of all kinds
};

/// Lays out a pool for each length, stores a sequence in it and counts. MODEL may be a lone config: no
/// weights are read. Errors: those of artifact::open, model::read_spec and engine::measure_resident_kv;
/// kUsage for a length below 1.
Result<std::vector<KvMeasurement>> measure_kv(const LoadOptions& options,
                                              const std::vector<std::int64_t>& lengths);

/// The document of `serve --measure --format json`.
Json to_json(const std::vector<KvMeasurement>& measurements, const std::string& model);

}  // namespace plimsoll::serve
