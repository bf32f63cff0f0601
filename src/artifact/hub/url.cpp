// SPDX-License-Identifier: Apache-2.0
#include "artifact/hub/url.h"

#include <algorithm>
#include <array>

#include "base/text.h"

namespace plimsoll::artifact {
namespace {

constexpr std::size_t kMaxUrl = 8 * 1024;  // signed addresses have about 1.5 KiB

bool has_control(std::string_view text) {
  return std::any_of(text.begin(), text.end(),
                     [](char c) { return static_cast<unsigned char>(c) <= ' ' || c == '\x7f' || c == '\\'; });
}

}  // namespace

std::string Url::shown() const {
  return scheme + "://" + host + path.substr(0, path.find('?'));
}

std::optional<Url> parse_url(std::string_view text) {
  if (text.size() > kMaxUrl || has_control(text)) return std::nullopt;
  text = text.substr(0, text.find('#'));
  const std::size_t colon = text.find("://");
  if (colon == std::string_view::npos) return std::nullopt;
  Url url;
  url.scheme = lower_ascii(text.substr(0, colon));
  if (url.scheme != "http" && url.scheme != "https") return std::nullopt;
  std::string_view rest = text.substr(colon + 3);
  const std::size_t end = std::min(rest.find_first_of("/?"), rest.size());
  url.host = lower_ascii(rest.substr(0, end));
  // A user name would let "https://huggingface.co@elsewhere" look like the hub.
  if (url.host.empty() || url.host.find('@') != std::string::npos) return std::nullopt;
  const std::string_view own_port = url.scheme == "https" ? ":443" : ":80";
  if (url.host.ends_with(own_port)) url.host.resize(url.host.size() - own_port.size());
  url.path = rest.substr(end);
  if (!url.path.starts_with('/')) url.path.insert(0, "/");
  return url;
}

std::optional<Url> resolve_url(const Url& base, std::string_view location) {
  if (location.empty() || has_control(location)) return std::nullopt;
  const std::size_t colon = location.find(':');
  if (colon < location.find_first_of("/?#")) return parse_url(location);
  if (location.starts_with("//")) return parse_url(base.scheme + ":" + std::string(location));
  const std::string root = base.scheme + "://" + base.host;
  if (location.starts_with('/')) return parse_url(root + std::string(location));
  const std::string path = base.path.substr(0, base.path.find('?'));
  if (location.starts_with('?')) return parse_url(root + path + std::string(location));
  return parse_url(root + path.substr(0, path.rfind('/') + 1) + std::string(location));
}

std::string without_user(std::string_view text) {
  const std::size_t scheme = text.find("://");
  const std::size_t begin = scheme == std::string_view::npos ? 0 : scheme + 3;
  const std::size_t at = text.substr(0, text.find_first_of("/?#", begin)).rfind('@');
  if (at == std::string_view::npos || at < begin) return std::string(text);
  return std::string(text.substr(0, begin)) + std::string(text.substr(at + 1));
}

bool is_same_origin(const Url& a, const Url& b) {
  return a.scheme == b.scheme && a.host == b.host;
}

bool is_hub(const Url& url, const Url& endpoint) {
  static constexpr std::array<std::string_view, 3> kHosts = {"huggingface.co", "hf.co",
                                                             "hub-ci.huggingface.co"};
  if (is_same_origin(url, endpoint)) return true;
  return url.scheme == "https" && std::find(kHosts.begin(), kHosts.end(), url.host) != kHosts.end();
}

std::string quoted(std::string_view text, bool keeps_slashes) {
  constexpr char kHex[] = "0123456789ABCDEF";
  std::string result;
  for (const char c : text) {
    const bool is_plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                          c == '-' || c == '.' || c == '_' || c == '~' || (c == '/' && keeps_slashes);
    if (is_plain) {
      result += c;
      continue;
    }
    const auto byte = static_cast<unsigned char>(c);
    result += {'%', kHex[byte >> 4], kHex[byte & 15]};
  }
  return result;
}

}  // namespace plimsoll::artifact
