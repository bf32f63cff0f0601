// SPDX-License-Identifier: Apache-2.0
// One HTTP exchange with a hub or its file servers: no redirect is followed, no try repeated, no header
// added but those of the request. The only file that knows libcurl. A Transport keeps its connections open
// between exchanges and belongs to one thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "artifact/hub/settings.h"
#include "artifact/hub/url.h"

namespace plimsoll::artifact {

enum class Fault {
  kNone,
  kResolve,   // no such host
  kConnect,   // nobody answers there
  kTls,       // the certificate, or the agreement on how to encrypt
  kTimeout,   // silence for longer than is allowed
  kCut,       // the answer ended before its end
  kTooLarge,  // more than the request takes
  kStopped,   // the receiver wanted no more
  kOther,
};

struct HttpRequest {
  bool is_head = false;
  Url url;
  std::vector<std::string> headers;  // "Name: value"
  std::chrono::milliseconds timeout{10'000};
  std::int64_t max_body = 0;  // bytes taken into `body` when there is no receiver
};

struct HttpAnswer {
  int status = 0;                                            // 0: none came
  std::vector<std::pair<std::string, std::string>> headers;  // names in lower case
  std::string body;
  Fault fault = Fault::kNone;
  std::string reason;  // of a fault

  /// Value of the last header of that name (lower case), or nothing in it.
  std::string_view header(std::string_view name) const;
  bool is_success() const { return fault == Fault::kNone && status >= 200 && status < 300; }
};

/// Takes a piece of a body; the status and headers are known by then. False stops the exchange.
using Receiver = std::function<bool(const HttpAnswer& head, std::string_view piece)>;

class Transport {
 public:
  explicit Transport(const HubSettings& settings);
  ~Transport();
  Transport(const Transport&) = delete;
  Transport& operator=(const Transport&) = delete;

  /// Without a receiver the body is kept in the answer.
  HttpAnswer send(const HttpRequest& request, const Receiver& receiver = {});

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace plimsoll::artifact
