// SPDX-License-Identifier: Apache-2.0
// Traces: any bytes give an error or rows in order whose lengths and blocks are within their bounds.
#include <cstdint>
#include <string_view>

#include "workload/workload.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const auto trace = plimsoll::workload::read_trace(bytes, "input", {});
  if (!trace) {
    PLIMSOLL_CHECK(!trace.error().message.empty(), "an error says what it is");
    return 0;
  }
  PLIMSOLL_CHECK(!trace->requests.empty(), "a trace has rows");
  double before = 0;
  for (const auto& request : trace->requests) {
    PLIMSOLL_CHECK(request.at_s >= before, "rows are in order");
    PLIMSOLL_CHECK(request.input_tokens > 0 && request.output_tokens > 0, "lengths are above 0");
    PLIMSOLL_CHECK(request.first_block + request.num_blocks <= std::ssize(trace->block_ids),
                   "blocks are held");
    before = request.at_s;
  }
  return 0;
}
