// SPDX-License-Identifier: Apache-2.0
// Where does an address lead, and may the token go there? Splits and joins http addresses, follows relative
// ones, and knows the hosts that belong to the hub. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace plimsoll::artifact {

struct Url {
  std::string scheme;  // "http" or "https"
  std::string host;    // lower case, with a port that was written and is not the scheme's own
  std::string path;    // from its slash on, with the query; no fragment

  std::string text() const { return scheme + "://" + host + path; }
  /// Without the query, which may hold a signature: for messages.
  std::string shown() const;
};

/// Splits an absolute address. Nothing for other schemes (file:, ftp:), user names in it, control
/// characters, and more than 8 KiB.
std::optional<Url> parse_url(std::string_view text);

/// The address that a Location header names, seen from `base`; it may be relative.
std::optional<Url> resolve_url(const Url& base, std::string_view location);

/// An address as it was written, for messages: user name and password cut out.
std::string without_user(std::string_view text);

/// True when both have the same scheme and host (and port).
bool is_same_origin(const Url& a, const Url& b);

/// True for the endpoint's own origin and, over https, the hub's known hosts: only they see the token.
bool is_hub(const Url& url, const Url& endpoint);

/// Percent-encodes all but letters, digits and -._~; slashes too unless they are `kept`.
std::string quoted(std::string_view text, bool keeps_slashes);

}  // namespace plimsoll::artifact
