// SPDX-License-Identifier: Apache-2.0
#include "http/exchange.h"

#include <fmt/format.h>

#include <boost/beast/http/status.hpp>
#include <utility>

namespace plimsoll::http {
namespace {

// A line break inside a header value would start a header of the value's own making.
void append_field(std::string& out, std::string_view text) {
  for (char c : text)
    if (c != '\r' && c != '\n' && c != '\0') out += c;
}

bool may_have_body(int status) {
  return status >= 200 && status != 204 && status != 304;
}

class ExchangeResponder final : public Responder {
 public:
  explicit ExchangeResponder(std::shared_ptr<Exchange> exchange) : exchange_(std::move(exchange)) {}
  ~ExchangeResponder() override { exchange_->abandon(); }
  void send(Response response) override { exchange_->send(std::move(response)); }
  void begin_stream(int status, Headers headers) override {
    exchange_->begin_stream(status, std::move(headers));
  }
  void write(std::string chunk) override { exchange_->write(chunk); }
  void finish() override { exchange_->finish(); }
  bool is_disconnected() const override { return exchange_->is_disconnected(); }
  void on_disconnect(std::function<void()> callback) override {
    exchange_->on_disconnect(std::move(callback));
  }

 private:
  const std::shared_ptr<Exchange> exchange_;
};

}  // namespace

void Mailbox::post(std::shared_ptr<Exchange> exchange) {
  const std::lock_guard lock(mutex_);
  if (!wake_) return;
  dirty_.push_back(std::move(exchange));
  if (dirty_.size() == 1) wake_();
}

std::vector<std::shared_ptr<Exchange>> Mailbox::take() {
  const std::lock_guard lock(mutex_);
  return std::exchange(dirty_, {});
}

void Mailbox::close() {
  std::vector<std::shared_ptr<Exchange>> unread;  // destroyed outside the lock
  const std::lock_guard lock(mutex_);
  wake_ = nullptr;
  unread.swap(dirty_);
}

std::string status_line(int status) {
  const auto reason =
      boost::beast::http::obsolete_reason(boost::beast::http::int_to_status(static_cast<unsigned>(status)));
  return fmt::format("HTTP/1.1 {} {}\r\n", status, std::string_view(reason.data(), reason.size()));
}

void Exchange::append_head(int status, const Headers& headers) {
  pending_ += status_line(status);
  for (const auto& [name, value] : headers) {
    append_field(pending_, name);
    pending_ += ": ";
    append_field(pending_, value);
    pending_ += "\r\n";
  }
  if (header(headers, "connection") == "close") keep_alive_ = false;
  if (!traits_.keep_alive && keep_alive_) {
    keep_alive_ = false;
    pending_ += "Connection: close\r\n";
  } else if (traits_.is_http_1_0 && keep_alive_) {
    pending_ += "Connection: keep-alive\r\n";
  }
}

void Exchange::send(Response response) {
  {
    const std::lock_guard lock(mutex_);
    if (is_gone_ || phase_ != Phase::kWaiting) return;
    phase_ = Phase::kComplete;
    append_head(response.status, response.headers);
    if (may_have_body(response.status))
      pending_ += fmt::format("Content-Length: {}\r\n", response.body.size());
    pending_ += "\r\n";
    if (!traits_.is_head_request && may_have_body(response.status)) pending_ += response.body;
  }
  notify();
}

void Exchange::begin_stream(int status, Headers headers) {
  {
    const std::lock_guard lock(mutex_);
    if (is_gone_ || phase_ != Phase::kWaiting) return;
    phase_ = Phase::kStreaming;
    if (traits_.is_http_1_0) {
      // HTTP/1.0 knows no chunks: the end of the connection is the end of the body.
      headers.emplace_back("Connection", "close");
      append_head(status, headers);
    } else {
      append_head(status, headers);
      pending_ += "Transfer-Encoding: chunked\r\n";
    }
    pending_ += "\r\n";
  }
  notify();
}

void Exchange::write(std::string_view chunk) {
  if (chunk.empty()) return;  // a chunk of no bytes would end the stream
  {
    const std::lock_guard lock(mutex_);
    if (is_gone_ || is_broken_ || phase_ != Phase::kStreaming || traits_.is_head_request) return;
    if (traits_.is_http_1_0) {
      pending_ += chunk;
    } else {
      fmt::format_to(std::back_inserter(pending_), "{:x}\r\n", chunk.size());
      pending_ += chunk;
      pending_ += "\r\n";
    }
    if (pending_.size() + in_flight_bytes_ > traits_.max_unsent_bytes) {
      is_broken_ = true;
      pending_.clear();
    }
  }
  notify();
}

void Exchange::finish() {
  {
    const std::lock_guard lock(mutex_);
    if (is_gone_ || phase_ != Phase::kStreaming) return;
    phase_ = Phase::kComplete;
    if (!traits_.is_http_1_0 && !traits_.is_head_request) pending_ += "0\r\n\r\n";
  }
  notify();
}

void Exchange::abandon() {
  bool is_streaming = false;
  {
    const std::lock_guard lock(mutex_);
    if (is_gone_ || phase_ == Phase::kComplete) return;
    is_streaming = phase_ == Phase::kStreaming;
    if (is_streaming) {
      // Closing without the last chunk is how the peer sees that the stream did not end as it should.
      phase_ = Phase::kComplete;
      keep_alive_ = false;
    }
  }
  if (is_streaming)
    notify();
  else
    send({500, {{"Content-Type", "text/plain; charset=utf-8"}}, "the request was dropped unanswered\n"});
}

bool Exchange::is_disconnected() const {
  const std::lock_guard lock(mutex_);
  return is_gone_;
}

void Exchange::on_disconnect(std::function<void()> callback) {
  bool is_late = false;
  {
    const std::lock_guard lock(mutex_);
    if (phase_ == Phase::kComplete && !is_gone_) return;
    callback_.swap(callback);
    is_late = is_gone_;
    must_notify_ = is_late;
  }
  if (is_late) mailbox_->post(shared_from_this());
}

void Exchange::notify() {
  {
    const std::lock_guard lock(mutex_);
    if (is_posted_ || is_gone_) return;
    is_posted_ = true;
  }
  mailbox_->post(shared_from_this());
}

Exchange::Taken Exchange::take() {
  const std::lock_guard lock(mutex_);
  is_posted_ = false;
  Taken taken;
  if (must_notify_) {
    must_notify_ = false;
    taken.on_disconnect = std::exchange(callback_, nullptr);
  }
  taken.bytes = std::exchange(pending_, {});
  in_flight_bytes_ += taken.bytes.size();
  taken.is_complete = phase_ == Phase::kComplete;
  taken.is_broken = is_broken_;
  if (taken.is_complete) taken.unneeded = std::exchange(callback_, nullptr);
  return taken;
}

void Exchange::sent(std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  in_flight_bytes_ -= bytes;
}

std::function<void()> Exchange::disconnect() {
  const std::lock_guard lock(mutex_);
  if (is_gone_) return nullptr;
  is_gone_ = true;
  pending_.clear();
  return std::exchange(callback_, nullptr);
}

bool Exchange::keep_alive() const {
  const std::lock_guard lock(mutex_);
  return keep_alive_;
}

std::shared_ptr<Responder> make_responder(std::shared_ptr<Exchange> exchange) {
  return std::make_shared<ExchangeResponder>(std::move(exchange));
}

}  // namespace plimsoll::http
