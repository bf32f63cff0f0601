// SPDX-License-Identifier: Apache-2.0
#include "artifact/hub/refusal.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <span>

#include "base/text.h"

namespace plimsoll::artifact {
namespace {

constexpr std::size_t kShownOfServer = 200;  // characters of a server's own words

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

std::string_view words_of(const HttpAnswer& answer) {
  const std::string_view header = answer.header("x-error-message");
  return header.empty() ? std::string_view(answer.body) : header;
}

std::optional<std::int64_t> number_in(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || value < 0) return std::nullopt;
  return value;
}

std::string token_advice(const HubSettings& settings) {
  return settings.token.empty() ? "set HF_TOKEN to a token of an account that may read it"
                                : "the token in use does not open it: check HF_TOKEN";
}

std::string_view variable(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : std::string_view();
}

// Does no_proxy take this host out? "*" takes all; a name takes itself and what ends in a dot and it.
bool is_without_proxy(std::string_view host) {
  std::string_view names = variable("no_proxy");
  if (names.empty()) names = variable("NO_PROXY");
  if (const std::size_t port = host.rfind(':'); port != std::string_view::npos && host.back() != ']')
    host = host.substr(0, port);
  while (!names.empty()) {
    const std::size_t end = std::min(names.find_first_of(", "), names.size());
    std::string name = lower_ascii(names.substr(0, end));
    names.remove_prefix(std::min(end + 1, names.size()));
    if (name == "*") return true;
    if (name.starts_with('.')) name.erase(0, 1);
    if (name.empty()) continue;
    if (host == name || host == "[" + name + "]" || host.ends_with("." + name)) return true;
  }
  return false;
}

// The variable that sends requests to this address over a proxy, as libcurl reads them; empty without one.
std::string_view proxy_variable(const Url& url) {
  // HTTP_PROXY is not read: a web server sets it from what a client says.
  constexpr std::array<const char*, 4> kHttps = {"https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"};
  constexpr std::array<const char*, 3> kHttp = {"http_proxy", "all_proxy", "ALL_PROXY"};
  if (is_without_proxy(url.host)) return {};
  const bool is_https = url.scheme == "https";
  for (const char* name :
       is_https ? std::span<const char* const>(kHttps) : std::span<const char* const>(kHttp))
    if (!variable(name).empty()) return name;
  return {};
}

Error network_error(const HttpAnswer& answer, const Asked& asked, const Url& url,
                    const HubSettings& settings) {
  const std::string host = url.scheme + "://" + url.host;
  Error error{ErrorCode::kNetwork, {}, asked.place(), {}};
  const std::string proxy(proxy_variable(url));
  const std::string offline = fmt::format(
      "check the network and HF_ENDPOINT{}; HF_HUB_OFFLINE=1 uses what is in the cache without asking",
      proxy.empty() ? "" : ", and the proxy that " + proxy + " names");
  switch (answer.fault) {
    case Fault::kResolve:
      error.message = fmt::format("asking the hub: the name of {} cannot be resolved", host);
      error.fix = offline;
      break;
    case Fault::kConnect:
      error.message = fmt::format("asking the hub: nobody answers at {}", host);
      error.fix = offline;
      break;
    case Fault::kTls:
      error.message = fmt::format("asking the hub: no trusted connection to {}: {}", host, answer.reason);
      error.fix = "if a proxy or a mirror uses its own authority, name its certificates in SSL_CERT_FILE";
      break;
    case Fault::kTimeout:
      error.message = fmt::format("asking the hub: {} was silent for too long", host);
      error.fix = "try again, or allow more seconds with HF_HUB_ETAG_TIMEOUT and HF_HUB_DOWNLOAD_TIMEOUT";
      break;
    case Fault::kCut:
      error.message = fmt::format("asking the hub: {} ended its answer before the end", host);
      error.fix = "try again: what has arrived is kept";
      break;
    case Fault::kTooLarge:
      error.message = fmt::format("asking the hub: {} sends more than such an answer may have", host);
      error.fix = "check HF_ENDPOINT";
      break;
    default:
      error.message = fmt::format("asking the hub: {}: {}", host, answer.reason);
      error.fix = offline;
  }
  error.message = printable(without_token(std::move(error.message), settings));
  error.where = printable(std::move(error.where));
  return error;
}

}  // namespace

std::string printable(std::string text) {
  for (char& c : text)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
  return text;
}

std::string Asked::place() const {
  std::string text = repo;
  if (!revision.empty()) text += "@" + revision;
  if (!file.empty()) text += ": " + file;
  return text;
}

Refusal refusal_of(const HttpAnswer& answer) {
  if (answer.fault == Fault::kTls) return Refusal::kTls;
  if (answer.fault != Fault::kNone) return Refusal::kNetwork;
  const std::string_view code = answer.header("x-error-code"), words = words_of(answer);
  if (code == "RevisionNotFound") return Refusal::kNoRevision;
  if (code == "EntryNotFound") return Refusal::kNoEntry;
  if (code == "GatedRepo") return Refusal::kGated;
  if (answer.status == 403 && contains(words, "Access to this resource is disabled"))
    return Refusal::kDisabled;
  if (answer.status == 401 && contains(words, "Invalid credentials in Authorization header"))
    return Refusal::kBadToken;
  if (code == "RepoNotFound" || answer.status == 401 || answer.status == 404) return Refusal::kNoRepo;
  if (answer.status == 403) return Refusal::kForbidden;
  if (answer.status == 429) return Refusal::kRateLimited;
  if (answer.status >= 500) return Refusal::kServer;
  return Refusal::kOther;
}

std::optional<std::int64_t> asked_wait_s(const HttpAnswer& answer) {
  // RateLimit: "api";r=0;t=55 stands in every answer; it asks to wait when nothing remains.
  const std::string_view limit = answer.header("ratelimit");
  if (answer.status == 429 && limit.find(";r=0") != std::string_view::npos)
    if (const std::size_t at = limit.find(";t="); at != std::string_view::npos)
      if (const auto seconds = number_in(limit.substr(at + 3))) return seconds;
  return number_in(answer.header("retry-after"));
}

Error refusal_error(const HttpAnswer& answer, const Asked& asked, const Url& url,
                    const HubSettings& settings) {
  Error error{ErrorCode::kNetwork, {}, asked.place(), {}};
  const auto endpoint = parse_url(settings.endpoint);
  if (answer.fault == Fault::kNone && endpoint && !is_hub(url, *endpoint)) {
    // Only the hub itself knows about repositories and tokens.
    error.message = printable(
        fmt::format("downloading: the file server {} answers with status {}", url.host, answer.status));
    error.fix = "try again: the address it was given may have expired";
    return error;
  }
  const std::string page = settings.endpoint + "/" + asked.repo;
  switch (refusal_of(answer)) {
    case Refusal::kNetwork:
    case Refusal::kTls:
      return network_error(answer, asked, url, settings);
    case Refusal::kGated:
      error.message =
          fmt::format("asking the hub: {} is gated, and its files need its terms accepted", asked.repo);
      error.fix = fmt::format("accept the terms at {}, then set HF_TOKEN to a token of that account", page);
      break;
    case Refusal::kNoRepo:
      error.message = fmt::format("asking the hub: there is no repository {}, or it is private (status {})",
                                  asked.repo, answer.status);
      error.fix = "check the spelling; if it is private: " + token_advice(settings);
      break;
    case Refusal::kNoRevision:
      error.message = fmt::format("asking the hub: {} has no revision \"{}\"", asked.repo, asked.revision);
      error.fix = "give a branch, a tag or a commit of 40 digits that is there";
      break;
    case Refusal::kNoEntry:
      error.message = fmt::format("asking the hub: {} has no file {} in revision {}", asked.repo, asked.file,
                                  asked.revision);
      error.fix = "check the file's name, or another revision";
      break;
    case Refusal::kBadToken:
      error.message = "asking the hub: the token is refused as invalid";
      error.fix = "set HF_TOKEN to a valid token, or unset it (and the file HF_TOKEN_PATH) for public models";
      break;
    case Refusal::kForbidden:
      error.message = fmt::format("asking the hub: the token may not read {} (status 403)", asked.repo);
      error.fix = "give the token read access to this repository in its settings";
      break;
    case Refusal::kDisabled:
      error.message = fmt::format("asking the hub: access to {} has been disabled", asked.repo);
      error.fix = "the hub itself has closed this repository; look for another copy of the model";
      break;
    case Refusal::kRateLimited: {
      const auto wait = asked_wait_s(answer);
      error.message = fmt::format("asking the hub: too many requests (status 429){}",
                                  wait ? fmt::format("; it asks to wait {} s", *wait) : "");
      error.fix =
          settings.token.empty() ? "try again later; with HF_TOKEN the limit is higher" : "try again later";
      break;
    }
    case Refusal::kServer:
      error.message =
          fmt::format("asking the hub: {} has a fault of its own (status {})", url.host, answer.status);
      error.fix = "try again later: what has arrived is kept";
      break;
    case Refusal::kNotAHub:
    case Refusal::kOther:
      error.message = fmt::format("asking the hub: {} answers with status {}: {}", url.shown(), answer.status,
                                  words_of(answer).substr(0, kShownOfServer));
      error.fix = "check HF_ENDPOINT";
  }
  error.message = printable(without_token(std::move(error.message), settings));
  error.where = printable(std::move(error.where));
  return error;
}

Error not_a_hub(const std::string& what, const Asked& asked, const Url& url) {
  return Error{
      ErrorCode::kNetwork,
      printable(fmt::format("asking the hub: {} does not answer as a hub does: {}", url.shown(), what)),
      printable(asked.place()),
      "check HF_ENDPOINT: a mirror or proxy in between must pass the hub's headers on"};
}

}  // namespace plimsoll::artifact
