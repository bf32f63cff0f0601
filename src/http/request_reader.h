// SPDX-License-Identifier: Apache-2.0
// Where does one HTTP/1.1 request end and the next begin? Takes bytes as they arrive, gives whole requests,
// and keeps what a pipelining peer sent ahead. Bounded: head, body and framing lines have limits. Knows no
// socket; one thread at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "http/http.h"

namespace plimsoll::http {

struct ReadLimits {
  std::int64_t max_header_bytes = std::int64_t{64} << 10;
  std::int64_t max_body_bytes = std::int64_t{32} << 20;
};

class RequestReader {
 public:
  enum class Step { kNeedMore, kComplete, kRefused };

  explicit RequestReader(const ReadLimits& limits);
  ~RequestReader();
  RequestReader(RequestReader&&) noexcept;

  /// Adds what the peer sent. Nothing is parsed yet.
  void append(std::string_view bytes);
  /// Parses as far as the bytes reach. After kComplete call take(); after kRefused the connection ends.
  Step advance();
  /// The complete request; the reader then stands at the next one.
  Request take();

  bool head_complete() const;
  /// The peer waits for "100 Continue" before it sends its body. True once per request.
  bool take_wants_continue();
  bool keep_alive() const;
  bool is_http_1_0() const;
  /// True when bytes of an unfinished request are here.
  bool has_started() const;
  std::size_t buffered_bytes() const;

  int refusal_status() const;  // 400, 413, 431; 0 when nothing was refused
  const std::string& refusal_reason() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace plimsoll::http
