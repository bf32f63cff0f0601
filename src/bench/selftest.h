// SPDX-License-Identifier: Apache-2.0
// How wrong is this client, on this machine, today? Drives the load client against a server whose timetable
// and writes are known, and holds what it measured against what happened. Blocks for some 30 seconds.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "bench/statistics.h"

namespace plimsoll::bench {

struct SelftestCase {
  std::int64_t streams = 1;
  std::chrono::milliseconds ttft{50};
  std::chrono::milliseconds itl{10};
  std::int64_t tokens = 100;
  std::int64_t requests = 1;  // in all
};

/// 1, 64 and 256 streams with 10 ms between tokens, 1,000 with 100 ms.
std::vector<SelftestCase> selftest_cases();
/// As many streams as asked, with 10 ms between tokens up to 256 of them, else 100 ms.
SelftestCase selftest_case(std::int64_t streams);

struct SelftestRow {
  SelftestCase given;
  std::int64_t completed = 0;
  std::int64_t tokens = 0;
  /// The client's figure less the server's, by request and by gap, in milliseconds. The server's TTFT is from
  /// the kernel's receipt of the request to its write of the first token.
  double ttft_bias_ms = 0;
  Samples ttft_error_ms;  // without sign
  Samples itl_error_ms;
  Samples client_lag_ms;  // from the kernel's stamp of a read to this client's
  Samples send_lag_ms;
  Samples server_late_ms;  // the server's writes behind its own timetable
  std::int64_t late_chunks = 0;
  double cpu_us_per_token = 0;  // of the thread that sends, reads, parses
  double client_cpu_share = 0;  // of one core
  bool client_limited = false;
  bool client_starved = false;
  std::int64_t failed() const { return given.requests - completed; }
};

/// Errors: kNetwork when no loopback port can be had.
Result<SelftestRow> run_selftest(const SelftestCase& given);

/// {"schema":"plimsoll.bench_selftest/1","rows":[...]}
Json selftest_json(const std::vector<SelftestRow>& rows);
std::string selftest_text(const std::vector<SelftestRow>& rows);

}  // namespace plimsoll::bench
