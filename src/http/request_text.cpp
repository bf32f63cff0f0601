// SPDX-License-Identifier: Apache-2.0
#include "http/request_text.h"

#include "base/text.h"

namespace plimsoll::http {
namespace {

/// A line break would start another header. The value may be a key: no error shows it.
Status check_headers(const Headers& headers) {
  for (const auto& [name, value] : headers) {
    if (name.find_first_of("\r\n") != std::string::npos)
      return fail(ErrorCode::kUsage, "the name of a header holds a line break");
    if (value.find_first_of("\r\n") != std::string::npos)
      return fail(ErrorCode::kUsage, "the value of the header " + name + " holds a line break", {},
                  "take the line break out, also at the end of a key that was read from a file");
  }
  return {};
}

}  // namespace

Result<std::string> request_text(const Url& url, const Call& call, bool keep_alive) {
  PLIMSOLL_TRY_VOID(check_headers(call.headers));
  const bool is_default_port = url.port == (url.is_tls ? 443 : 80);
  const bool is_ipv6 = url.host.find(':') != std::string::npos;
  std::string out = call.method + " " + call.target + " HTTP/1.1\r\n";
  if (header(call.headers, "host").empty()) {
    out += "Host: " + (is_ipv6 ? "[" + url.host + "]" : url.host);
    if (!is_default_port) out += ":" + std::to_string(url.port);
    out += "\r\n";
  }
  // The length is the body's, whatever a caller says: another one would tear the connection's framing.
  for (const auto& [name, value] : call.headers)
    if (lower_ascii(name) != "content-length") out += name + ": " + value + "\r\n";
  if (!keep_alive && header(call.headers, "connection").empty()) out += "Connection: close\r\n";
  if (!call.body.empty() || call.method == "POST")
    out += "Content-Length: " + std::to_string(call.body.size()) + "\r\n";
  return out + "\r\n" + call.body;
}

}  // namespace plimsoll::http
