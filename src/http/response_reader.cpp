// SPDX-License-Identifier: Apache-2.0
#include "http/response_reader.h"

#include <algorithm>
#include <charconv>

#include "base/text.h"

namespace plimsoll::http {
namespace {

constexpr std::size_t kMaxHeadBytes = 256 * 1024;
constexpr std::size_t kMaxLineBytes = 64 * 1024;
// 2^48: far above any body, far below overflow when sizes are added.
constexpr std::int64_t kMaxBodyBytes = std::int64_t{1} << 48;

std::string_view trim(std::string_view text) {
  const auto is_blank = [](char c) { return c == ' ' || c == '\t'; };
  while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
  return text;
}

bool parse_number(std::string_view text, int base, std::int64_t& value) {
  if (text.empty() || text.front() == '-') return false;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  return error == std::errc() && end == text.data() + text.size() && value <= kMaxBodyBytes;
}

}  // namespace

ResponseReader::Step ResponseReader::fail(std::string why) {
  state_ = State::kFailed;
  fault_ = std::move(why);
  return Step::kMalformed;
}

bool ResponseReader::take_line(std::string_view& bytes, std::string& line) {
  const std::size_t end = bytes.find('\n');
  line_.append(bytes.substr(0, end == bytes.npos ? bytes.size() : end));
  bytes.remove_prefix(end == bytes.npos ? bytes.size() : end + 1);
  if (end == bytes.npos) return false;
  if (!line_.empty() && line_.back() == '\r') line_.pop_back();
  line.swap(line_);
  line_.clear();
  return true;
}

ResponseReader::Step ResponseReader::feed(std::string_view bytes, Sink& sink, std::size_t& used) {
  const std::size_t given = bytes.size();
  Step step = state_ == State::kDone     ? Step::kComplete
              : state_ == State::kFailed ? Step::kMalformed
                                         : Step::kNeedMore;
  std::string line;
  while (step == Step::kNeedMore && !bytes.empty()) {
    if (state_ == State::kFixedBody || state_ == State::kOpenBody || state_ == State::kChunkData) {
      take_body(bytes, sink);
    } else if (take_line(bytes, line)) {
      step = on_line(line, sink);
    } else if (line_.size() > kMaxLineBytes) {
      step = fail("a line of the answer's framing is longer than 64 KiB");
    }
    if (state_ == State::kDone) step = Step::kComplete;
  }
  used = given - bytes.size();
  return step;
}

void ResponseReader::take_body(std::string_view& bytes, Sink& sink) {
  std::string_view piece = bytes;
  if (state_ != State::kOpenBody) piece = bytes.substr(0, static_cast<std::size_t>(left_));
  bytes.remove_prefix(piece.size());
  if (state_ != State::kOpenBody) {
    left_ -= static_cast<std::int64_t>(piece.size());
    if (left_ == 0) state_ = state_ == State::kFixedBody ? State::kDone : State::kChunkEnd;
  }
  sink.body(piece);
}

ResponseReader::Step ResponseReader::on_line(std::string_view line, Sink& sink) {
  switch (state_) {
    case State::kHead:
    case State::kTrailer:
      head_bytes_ += line.size() + 2;
      if (head_bytes_ > kMaxHeadBytes) return fail("the head of the answer is larger than 256 KiB");
      if (state_ == State::kTrailer) {
        if (line.empty()) state_ = State::kDone;
        return Step::kNeedMore;
      }
      if (!has_status_) return status_line(line);
      return line.empty() ? head_end(sink) : header_line(line);
    case State::kChunkSize:
      return chunk_size(line);
    case State::kChunkEnd:
      if (!line.empty()) return fail("a chunk is longer than its announced size");
      state_ = State::kChunkSize;
      return Step::kNeedMore;
    default:
      return fail("the answer's framing is out of step");
  }
}

ResponseReader::Step ResponseReader::status_line(std::string_view line) {
  // HTTP/1.1 200 OK
  std::int64_t status = 0;
  if (line.size() < 12 || !line.starts_with("HTTP/1.") || line[8] != ' ' ||
      !parse_number(line.substr(9, 3), 10, status) || status < 100)
    return fail("the answer does not start with an HTTP/1 status line but with \"" +
                std::string(line.substr(0, 60)) + "\"");
  status_ = static_cast<int>(status);
  keep_alive_ = line[7] != '0';
  has_status_ = true;
  return Step::kNeedMore;
}

ResponseReader::Step ResponseReader::header_line(std::string_view line) {
  const std::size_t colon = line.find(':');
  if (colon == line.npos || colon == 0) return fail("a header line of the answer has no name and colon");
  headers_.emplace_back(std::string(line.substr(0, colon)), std::string(trim(line.substr(colon + 1))));
  return Step::kNeedMore;
}

ResponseReader::Step ResponseReader::head_end(Sink& sink) {
  if (status_ < 200) {
    if (status_ == 101) return fail("the server switched protocols unasked");
    headers_.clear();
    has_status_ = false;
    return Step::kNeedMore;
  }
  const std::string connection = lower_ascii(header(headers_, "connection"));
  if (connection.find("close") != connection.npos) keep_alive_ = false;
  if (connection.find("keep-alive") != connection.npos) keep_alive_ = true;
  const std::string coding = lower_ascii(header(headers_, "transfer-encoding"));
  const std::string_view length = header(headers_, "content-length");
  if (is_head_request_ || status_ == 204 || status_ == 304) {
    state_ = State::kDone;
  } else if (!coding.empty()) {
    if (coding != "chunked") return fail("the answer has the unknown transfer encoding \"" + coding + "\"");
    state_ = State::kChunkSize;
    head_bytes_ = 0;
  } else if (!length.empty()) {
    if (!parse_number(length, 10, left_)) return fail("the answer's Content-Length is no number");
    state_ = left_ == 0 ? State::kDone : State::kFixedBody;
  } else {
    state_ = State::kOpenBody;
    keep_alive_ = false;
  }
  sink.head(status_, headers_);
  return Step::kNeedMore;
}

ResponseReader::Step ResponseReader::chunk_size(std::string_view line) {
  const std::string_view digits = trim(line.substr(0, line.find(';')));
  if (!parse_number(digits, 16, left_)) return fail("the size of a chunk is no hexadecimal number");
  state_ = left_ == 0 ? State::kTrailer : State::kChunkData;
  return Step::kNeedMore;
}

ResponseReader::Step ResponseReader::end_of_input() {
  if (state_ == State::kDone) return Step::kComplete;
  if (state_ == State::kOpenBody) {
    state_ = State::kDone;
    return Step::kComplete;
  }
  return fail(has_status_ ? "the connection closed in the middle of the answer"
                          : "the connection closed before an answer");
}

}  // namespace plimsoll::http
