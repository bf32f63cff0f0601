// SPDX-License-Identifier: Apache-2.0
#include <charconv>

#include "http/http.h"

namespace plimsoll::http {

Result<Url> parse_url(std::string_view text) {
  const auto refuse = [&](std::string_view why) {
    return fail(ErrorCode::kUsage,
                "cannot use the address \"" + std::string(text) + "\": " + std::string(why), {},
                "give it as http://host:port or https://host/path");
  };
  Url url;
  std::string_view rest = text;
  if (rest.starts_with("http://")) {
    rest.remove_prefix(7);
  } else if (rest.starts_with("https://")) {
    rest.remove_prefix(8);
    url.is_tls = true;
  } else {
    return refuse("it starts with neither http:// nor https://");
  }
  for (char c : text)
    if (static_cast<unsigned char>(c) <= ' ' || c == '\x7f')
      return refuse("it holds a blank or control character");
  const std::size_t slash = rest.find_first_of("/?#");
  std::string_view authority = rest.substr(0, slash);
  std::string_view target = slash == rest.npos ? std::string_view() : rest.substr(slash);
  target = target.substr(0, target.find('#'));
  if (authority.find('@') != authority.npos)
    return refuse("user names in addresses are not sent; use a header");
  std::string_view port;
  if (authority.starts_with('[')) {
    const std::size_t end = authority.find(']');
    if (end == authority.npos) return refuse("the bracket of the IPv6 address is not closed");
    url.host = std::string(authority.substr(1, end - 1));
    authority.remove_prefix(end + 1);
    if (!authority.empty() && authority.front() != ':') return refuse("text follows the IPv6 address");
    if (!authority.empty()) port = authority.substr(1);
    if (!authority.empty() && port.empty()) return refuse("the port is empty");
  } else {
    const std::size_t colon = authority.find(':');
    url.host = std::string(authority.substr(0, colon));
    if (colon != authority.npos) {
      port = authority.substr(colon + 1);
      if (port.empty()) return refuse("the port is empty");
    }
  }
  if (url.host.empty()) return refuse("the host is empty");
  url.port = url.is_tls ? 443 : 80;
  if (!port.empty()) {
    const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), url.port);
    if (error != std::errc() || end != port.data() + port.size() || url.port < 1 || url.port > 65535)
      return refuse("the port is no number from 1 to 65535");
  }
  url.target = target.starts_with('/') ? std::string(target) : "/" + std::string(target);
  return url;
}

}  // namespace plimsoll::http
