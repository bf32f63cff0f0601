// SPDX-License-Identifier: Apache-2.0
// HTTP/1.1 framing, both directions. Whatever the bytes are and however they are cut, the readers must stay
// within memory, and must find the same messages as when the bytes come at once.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "http/request_reader.h"
#include "http/response_reader.h"

namespace {

using namespace plimsoll::http;

// Below every limit of the readers, so that no limit is met at one cut and missed at another.
constexpr std::size_t kMaxInput = 8 * 1024;

std::vector<std::string> read_requests(std::string_view bytes, std::size_t step) {
  RequestReader reader{ReadLimits{}};
  std::vector<std::string> found;
  for (std::size_t at = 0; at < bytes.size(); at += step) {
    reader.append(bytes.substr(at, step));
    for (;;) {
      const auto result = reader.advance();
      if (result == RequestReader::Step::kNeedMore) break;
      if (result == RequestReader::Step::kRefused) {
        found.push_back("\x01refused " + std::to_string(reader.refusal_status()));
        return found;
      }
      const bool keep_alive = reader.keep_alive();
      const Request request = reader.take();
      std::string line =
          request.method + " " + request.path + "?" + request.query + (keep_alive ? " +" : " -");
      for (const auto& [name, value] : request.headers) line += "\n" + name + ": " + value;
      found.push_back(line + "\n\n" + request.body);
    }
  }
  return found;
}

/// The same requests. One reader may still wait for the end of a head that the other has already refused:
/// with fewer bytes at hand Beast looks for the end of the head first.
bool is_same(std::vector<std::string> a, std::vector<std::string> b) {
  const auto is_refused = [](const std::vector<std::string>& found) {
    return !found.empty() && found.back().starts_with("\x01refused ");
  };
  if (is_refused(a) && !is_refused(b)) a.pop_back();
  if (is_refused(b) && !is_refused(a)) b.pop_back();
  return a == b;
}

struct Gathered final : ResponseReader::Sink {
  std::string text;
  void head(int status, const Headers& headers) override {
    text += std::to_string(status);
    for (const auto& [name, value] : headers) text += "\n" + name + ": " + value;
    text += "\n\n";
  }
  void body(std::string_view bytes) override { text += bytes; }
};

std::string read_response(std::string_view bytes, std::size_t step, bool is_head_request) {
  ResponseReader reader(is_head_request);
  Gathered gathered;
  auto result = ResponseReader::Step::kNeedMore;
  std::size_t total = 0;
  for (std::size_t at = 0; at < bytes.size() && result == ResponseReader::Step::kNeedMore; at += step) {
    std::size_t used = 0;
    result = reader.feed(bytes.substr(at, step), gathered, used);
    total += used;
  }
  if (result == ResponseReader::Step::kNeedMore) result = reader.end_of_input();
  return gathered.text + "|" + std::to_string(static_cast<int>(result)) + "|" +
         (result == ResponseReader::Step::kComplete ? std::to_string(total) : reader.fault());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 1 || size > kMaxInput) return 0;
  const std::size_t step = 1 + (data[0] & 0x3f);
  const bool is_head_request = (data[0] & 0x40) != 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data + 1), size - 1);
  if (!is_same(read_requests(bytes, bytes.size() + 1), read_requests(bytes, step))) std::abort();
  if (read_response(bytes, bytes.size() + 1, is_head_request) != read_response(bytes, step, is_head_request))
    std::abort();
  return 0;
}
