// SPDX-License-Identifier: Apache-2.0
// Any bytes as an HTTP/1.1 response that a server sent to the load client: cut anywhere, the same body comes
// out and the same verdict.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "http/response_reader.h"

namespace {

using plimsoll::http::ResponseReader;

struct Kept : ResponseReader::Sink {
  std::string text;
  void head(int status, const plimsoll::http::Headers& headers) override {
    text += std::to_string(status) + ' ' + std::to_string(headers.size()) + '\n';
  }
  void body(std::string_view bytes) override { text += bytes; }
};

std::string answer_of(std::string_view bytes, std::size_t piece_bytes) {
  ResponseReader reader;
  Kept kept;
  auto step = ResponseReader::Step::kNeedMore;
  std::size_t total_used = 0;
  for (std::size_t at = 0; at < bytes.size() && step == ResponseReader::Step::kNeedMore; at += piece_bytes) {
    std::size_t used = 0;
    const auto piece = bytes.substr(at, piece_bytes);
    step = reader.feed(piece, kept, used);
    if (used > piece.size()) std::abort();
    total_used += used;
  }
  if (step == ResponseReader::Step::kNeedMore) step = reader.end_of_input();
  // After a fault, how much came through before it may depend on the cuts.
  if (step == ResponseReader::Step::kMalformed) return "malformed";
  return kept.text + '\n' + std::to_string(total_used);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const std::string whole = answer_of(bytes, size);
  if (answer_of(bytes, 1) != whole || answer_of(bytes, 11) != whole) std::abort();
  return 0;
}
