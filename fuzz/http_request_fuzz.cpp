// SPDX-License-Identifier: Apache-2.0
// Any bytes as HTTP/1.1 requests on one connection: cut anywhere, the same requests come out and the same
// refusal.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "http/request_reader.h"

namespace {

using plimsoll::http::RequestReader;

std::vector<std::string> requests_of(std::string_view bytes, std::size_t piece_bytes) {
  std::vector<std::string> requests;
  RequestReader reader({.max_header_bytes = 1024, .max_body_bytes = 1024});
  for (std::size_t at = 0; at < bytes.size(); at += piece_bytes) {
    reader.append(bytes.substr(at, piece_bytes));
    for (;;) {
      const auto step = reader.advance();
      if (step == RequestReader::Step::kNeedMore) break;
      if (step == RequestReader::Step::kRefused) {
        requests.push_back("refused " + std::to_string(reader.refusal_status()));
        return requests;
      }
      const auto request = reader.take();
      requests.push_back(request.method + ' ' + request.path + '?' + request.query + '\n' + request.body);
    }
  }
  return requests;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const auto whole = requests_of(bytes, size);
  if (requests_of(bytes, 1) != whole || requests_of(bytes, 13) != whole) std::abort();
  return 0;
}
