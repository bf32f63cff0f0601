// SPDX-License-Identifier: Apache-2.0
// What did a real service receive? Readers of published traces: arrival times and lengths, for some which
// blocks of the prompts are alike; no text. The format is told by the header or the keys, never by the name.
// A trace owns its rows.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace plimsoll::workload {

enum class TraceFormat { kAzure, kBurstGpt, kVidur, kMooncake, kBailian };
/// azure burstgpt vidur mooncake bailian
std::string_view to_string(TraceFormat format);

struct TraceRequest {
  double at_s = 0;  // after the earliest row
  std::int64_t input_tokens = 0;
  std::int64_t output_tokens = 0;
  std::int64_t first_block = 0;  // of Trace::block_ids
  std::int64_t num_blocks = 0;
};

struct Trace {
  TraceFormat format = TraceFormat::kAzure;
  std::vector<TraceRequest> requests;   // by time; rows of one time in the file's order
  std::vector<std::int64_t> block_ids;  // equal ids: equal tokens
  std::int64_t block_tokens = 0;        // of a full block; 0 where the format has none
  bool has_times = true;                // false: lengths alone, all at_s are 0
  std::int64_t num_left_out = 0;        // rows without prompt or reply: failed requests
};

struct TraceOptions {
  /// Only rows of this model, for formats that name one; empty: all.
  std::string model;
  /// Tokens of a block; the format's own when not given: Mooncake 512, Bailian 16.
  std::optional<std::int64_t> block_tokens;
  /// Seconds that one unit of a JSON row's timestamp is; the format's own when not given: Mooncake 0.001,
  /// Bailian 1.
  std::optional<double> time_unit_s;
};

/// Errors: kMalformed with the line of a row that cannot be read (`name` before it), for a header of no known
/// format, for more than 20,000,000 rows or 200,000,000 block ids, and when no usable row is left.
/// Source: docs/formats/traces.md.
Result<Trace> read_trace(std::string_view text, const std::string& name, const TraceOptions& options);

/// The same from a file, which is mapped, not copied.
Result<Trace> open_trace(const std::string& path, const TraceOptions& options);

}  // namespace plimsoll::workload
