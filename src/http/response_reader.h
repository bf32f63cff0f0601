// SPDX-License-Identifier: Apache-2.0
// Where are head, body and end of an HTTP/1.1 response? Takes bytes as they arrive, hands body bytes on
// without keeping them (they reach a load client's clock in the order of the socket). Bounded; knows no
// socket; one thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "http/http.h"

namespace plimsoll::http {

class ResponseReader {
 public:
  enum class Step { kNeedMore, kComplete, kMalformed };

  class Sink {
   public:
    virtual ~Sink() = default;
    /// Interim answers (1xx) are not reported.
    virtual void head(int status, const Headers& headers) = 0;
    /// A piece of the body, without its framing; never empty.
    virtual void body(std::string_view bytes) = 0;
  };

  explicit ResponseReader(bool is_head_request = false) : is_head_request_(is_head_request) {}

  /// Reads `bytes` as far as this response goes. `used`: how many belonged to it; the rest are not ours.
  Step feed(std::string_view bytes, Sink& sink, std::size_t& used);
  /// The peer closed: kComplete when that is how this body ends, else kMalformed.
  Step end_of_input();
  bool keep_alive() const { return keep_alive_ && state_ == State::kDone; }
  const std::string& fault() const { return fault_; }

 private:
  enum class State {
    kHead,
    kFixedBody,
    kOpenBody,
    kChunkSize,
    kChunkData,
    kChunkEnd,
    kTrailer,
    kDone,
    kFailed
  };

  bool take_line(std::string_view& bytes, std::string& line);
  Step on_line(std::string_view line, Sink& sink);
  Step status_line(std::string_view line);
  Step header_line(std::string_view line);
  Step head_end(Sink& sink);
  Step chunk_size(std::string_view line);
  Step fail(std::string why);
  void take_body(std::string_view& bytes, Sink& sink);

  bool is_head_request_;
  State state_ = State::kHead;
  std::string line_;            // an unfinished line
  std::size_t head_bytes_ = 0;  // of all lines of a head or trailer
  std::int64_t left_ = 0;       // bytes of the fixed body or the chunk still to come
  int status_ = 0;
  bool has_status_ = false;
  bool keep_alive_ = true;
  Headers headers_;
  std::string fault_;
};

}  // namespace plimsoll::http
