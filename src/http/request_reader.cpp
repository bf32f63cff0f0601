// SPDX-License-Identifier: Apache-2.0
#include "http/request_reader.h"

#include <boost/asio/buffer.hpp>
#include <boost/beast/core/error.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <optional>

namespace plimsoll::http {

namespace beast = boost::beast;

namespace {

// Chunk extensions and trailers are framing that Beast does not bound; what is left unparsed is.
constexpr std::size_t kMaxFramingBytes = 16 * 1024;

std::string_view view(beast::string_view text) {
  return {text.data(), text.size()};
}

// Beast takes a coding that it does not know for an empty body, and what follows for the next request.
template <class Head>
bool has_unknown_coding(const Head& head) {
  for (const auto& field : head)
    if (field.name() == beast::http::field::transfer_encoding && !beast::iequals(field.value(), "chunked"))
      return true;
  return false;
}

}  // namespace

struct RequestReader::State {
  ReadLimits limits;
  std::string buffer;
  std::optional<beast::http::request_parser<beast::http::string_body>> parser;
  bool asked_continue = false;
  bool keep_alive = true;
  bool is_http_1_0 = false;
  int status = 0;
  std::string reason;

  void start() {
    parser.emplace();
    parser->eager(true);
    parser->header_limit(static_cast<std::uint32_t>(limits.max_header_bytes));
    parser->body_limit(static_cast<std::uint64_t>(limits.max_body_bytes));
    asked_continue = false;
  }

  Step refuse(int code, std::string why) {
    status = code;
    reason = std::move(why);
    return Step::kRefused;
  }

  Step refuse(const beast::error_code& error) {
    using Fault = beast::http::error;
    if (error == Fault::header_limit)
      return refuse(431,
                    "the request head is larger than " + std::to_string(limits.max_header_bytes) + " bytes");
    if (error == Fault::body_limit || error == Fault::buffer_overflow)
      return refuse(413,
                    "the request body is larger than " + std::to_string(limits.max_body_bytes) + " bytes");
    return refuse(400, "malformed HTTP request: " + error.message());
  }
};

RequestReader::RequestReader(const ReadLimits& limits) : state_(std::make_unique<State>()) {
  state_->limits = limits;
  state_->start();
}
RequestReader::~RequestReader() = default;
RequestReader::RequestReader(RequestReader&&) noexcept = default;

void RequestReader::append(std::string_view bytes) {
  state_->buffer.append(bytes);
}

RequestReader::Step RequestReader::advance() {
  State& s = *state_;
  if (s.status != 0) return Step::kRefused;
  std::size_t used = 0;
  while (used < s.buffer.size() && !s.parser->is_done()) {
    beast::error_code error;
    const std::size_t left = s.buffer.size() - used;
    const std::size_t taken = s.parser->put(boost::asio::buffer(s.buffer.data() + used, left), error);
    used += taken;
    if (error == beast::http::error::need_more) break;
    if (error) return s.refuse(error);
    if (taken == 0) break;
  }
  s.buffer.erase(0, used);
  if (s.parser->is_header_done() && has_unknown_coding(s.parser->get()))
    return s.refuse(501, "a Transfer-Encoding other than chunked is not taken");
  if (s.parser->is_done()) {
    s.keep_alive = s.parser->get().keep_alive();
    s.is_http_1_0 = s.parser->get().version() == 10;
    return Step::kComplete;
  }
  if (s.parser->is_header_done()) {
    if (s.buffer.size() > kMaxFramingBytes)
      return s.refuse(400, "malformed HTTP request: endless chunk line");
  } else if (s.buffer.size() > static_cast<std::size_t>(s.limits.max_header_bytes)) {
    return s.refuse(beast::http::error::header_limit);
  }
  return Step::kNeedMore;
}

Request RequestReader::take() {
  State& s = *state_;
  auto message = s.parser->release();
  Request request;
  request.method = std::string(view(message.method_string()));
  std::string_view target = view(message.target());
  // Absolute form ("GET http://host/path") is what proxies send; only its path matters here.
  if (!target.empty() && target.front() != '/') {
    const std::size_t scheme = target.find("://");
    const std::size_t slash = scheme == target.npos ? target.npos : target.find('/', scheme + 3);
    if (slash != target.npos) target.remove_prefix(slash);
  }
  const std::size_t question = target.find('?');
  request.path = std::string(target.substr(0, question));
  if (question != target.npos) request.query = std::string(target.substr(question + 1));
  for (const auto& field : message)
    request.headers.emplace_back(std::string(view(field.name_string())), std::string(view(field.value())));
  request.body = std::move(message.body());
  s.start();
  return request;
}

bool RequestReader::head_complete() const {
  return state_->parser->is_header_done();
}

bool RequestReader::take_wants_continue() {
  State& s = *state_;
  if (s.asked_continue || !s.parser->is_header_done() || s.parser->is_done()) return false;
  s.asked_continue = true;
  return beast::iequals(s.parser->get()[beast::http::field::expect], "100-continue");
}

bool RequestReader::keep_alive() const {
  return state_->keep_alive;
}
bool RequestReader::is_http_1_0() const {
  return state_->is_http_1_0;
}
bool RequestReader::has_started() const {
  return !state_->buffer.empty() || state_->parser->got_some();
}
std::size_t RequestReader::buffered_bytes() const {
  return state_->buffer.size();
}
int RequestReader::refusal_status() const {
  return state_->status;
}
const std::string& RequestReader::refusal_reason() const {
  return state_->reason;
}

}  // namespace plimsoll::http
