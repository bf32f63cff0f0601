// SPDX-License-Identifier: Apache-2.0
// The charts of one run: from records and samples to drawings. Pure.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "bench/record.h"
#include "bench/statistics.h"
#include "report/chart.h"

namespace plimsoll::bench {

/// Per cent against value, as percentiles are defined (linear between ranks), finer in the upper tail.
std::vector<report::Point> distribution_of(const Samples& samples);

/// A row for each request: queued here, waiting for the first token, decoding, or failed.
std::string request_timeline(const std::vector<RequestRecord>& records);

/// Running requests, and tokens held by them, over the run.
std::string load_over_time(const std::vector<RequestRecord>& records);

/// One chart for each name in [{"name","unit","endpoint","points":[[t_s,value],...]}], a line for each
/// endpoint; at most 24 of them. Nothing for an empty list.
std::string server_charts(const Json& server_metrics);

}  // namespace plimsoll::bench
