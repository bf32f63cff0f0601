// SPDX-License-Identifier: Apache-2.0
#include "artifact/hub/client.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <thread>
#include <utility>

#include "base/log.h"
#include "base/text.h"
#include "base/units.h"

namespace plimsoll::artifact {
namespace {

constexpr int kMaxRedirects = 8;
constexpr int kMaxTries = 5;
constexpr std::size_t kShownOfAddress = 80;
constexpr std::int64_t kMaxJson = 64 * kMiB;     // a page of the tree, or all headers of a large model
constexpr std::int64_t kMaxSkipped = 64 * kMiB;  // read past when a server ignores a range

bool is_redirect(const HttpAnswer& answer) {
  return answer.fault == Fault::kNone && answer.status >= 300 && answer.status < 400 &&
         !answer.header("location").empty();
}

std::string_view without_quotes(std::string_view etag) {
  if (etag.starts_with("W/")) etag.remove_prefix(2);
  if (etag.size() >= 2 && etag.front() == '"' && etag.back() == '"') etag = etag.substr(1, etag.size() - 2);
  return etag;
}

std::optional<std::int64_t> number_of(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || value < 0) return std::nullopt;
  return value;
}

// Where the body of a 206 begins: "bytes 100-199/1000".
std::optional<std::int64_t> first_of(const HttpAnswer& answer) {
  std::string_view range = answer.header("content-range");
  if (!range.starts_with("bytes ")) return std::nullopt;
  range.remove_prefix(6);
  return number_of(range.substr(0, range.find('-')));
}

// True for a 206 that says another size of the whole than is known: a newer file under an old name.
bool is_of_another(const HttpAnswer& answer, std::optional<std::int64_t> size) {
  const std::string_view range = answer.header("content-range");
  const std::size_t slash = range.find('/');
  if (slash == std::string_view::npos) return false;
  const auto whole = number_of(range.substr(slash + 1));
  return size && whole && *whole != *size;
}

// The address of rel="next" in a Link header: <https://...>; rel="next", <...>; rel="last".
std::string next_page(std::string_view link) {
  while (!link.empty()) {
    const std::size_t open = link.find('<'), close = link.find('>', open);
    if (open == std::string_view::npos || close == std::string_view::npos) return {};
    const std::string_view rest = link.substr(close + 1);
    const std::size_t end = std::min(rest.find('<'), rest.size());
    if (rest.substr(0, end).find("rel=\"next\"") != std::string_view::npos)
      return std::string(link.substr(open + 1, close - open - 1));
    link = rest.substr(end);
  }
  return {};
}

HttpAnswer stopped_redirect(std::string reason) {
  HttpAnswer answer;
  answer.fault = Fault::kOther;
  answer.reason = std::move(reason);
  return answer;
}

}  // namespace

Patience::Patience(const HubSettings& settings)
    : whole_(settings.max_wait), pause_(settings.first_pause), left_(whole_) {}

bool Patience::waits_after(const HttpAnswer& answer) {
  const bool is_busy =
      answer.fault == Fault::kNone && (answer.status == 408 || answer.status == 429 || answer.status >= 500);
  int most = 0;
  if (is_busy || answer.fault == Fault::kCut) most = kMaxTries;
  if (answer.fault == Fault::kTimeout) most = 2;
  if (answer.fault == Fault::kConnect) most = 1;  // somebody who waits for an answer is told soon
  if (tries_ >= most) return false;
  auto wait = pause_ * (1 << std::min(tries_, 5));
  const auto asked = is_busy ? asked_wait_s(answer) : std::nullopt;
  if (asked) wait = std::chrono::seconds(std::min<std::int64_t>(*asked, 86'400));
  if (wait > left_) return false;
  if (wait >= std::chrono::seconds(2))
    log_info(
        fmt::format("the hub {} {} s", asked ? "asks to wait" : "is asked again in", wait.count() / 1000));
  std::this_thread::sleep_for(wait);
  left_ -= wait;
  ++tries_;
  return true;
}

HubClient::HubClient(HubSettings settings) : settings_(std::move(settings)), transport_(settings_) {
  if (const auto endpoint = parse_url(settings_.endpoint)) {
    endpoint_ = *endpoint;
    has_endpoint_ = true;
  }
}

// Sends, and follows redirects. The token goes along while the chain has never left the hub's hosts.
HttpAnswer HubClient::follow(HttpRequest request, bool stops_at_foreign, Url& at, const Receiver& receiver) {
  bool is_trusted = is_hub(request.url, endpoint_);
  const std::vector<std::string> headers = request.headers;
  for (int hop = 0; hop <= kMaxRedirects; ++hop) {
    at = request.url;
    request.headers = headers;
    request.headers.push_back("User-Agent: plimsoll");
    request.headers.push_back("Accept-Encoding: identity");  // sizes are those of the file
    if (is_trusted && !settings_.token.empty())
      request.headers.push_back("Authorization: Bearer " + settings_.token);
    HttpAnswer answer = transport_.send(request, receiver);
    if (!is_redirect(answer)) return answer;
    const auto next = resolve_url(request.url, answer.header("location"));
    if (!next)
      return stopped_redirect(fmt::format("{} redirects to an address that is not http or https: {}",
                                          request.url.shown(),
                                          answer.header("location").substr(0, kShownOfAddress)));
    if (request.url.scheme == "https" && next->scheme == "http")
      return stopped_redirect(
          fmt::format("{} redirects from https to {}, which is refused", request.url.shown(), next->shown()));
    const bool stays = is_hub(*next, endpoint_);
    if (!stays && stops_at_foreign) return answer;
    is_trusted = is_trusted && stays;
    request.url = *next;
  }
  return stopped_redirect(fmt::format("more than {} redirects, the last to {}", kMaxRedirects, at.shown()));
}

Result<HubJson> HubClient::json(const std::string& path, const Asked& asked, Refusal* kind) {
  const auto url = path.starts_with('/') ? parse_url(settings_.endpoint + path) : parse_url(path);
  if (!url || !has_endpoint_)
    return fail(ErrorCode::kUsage, "asking the hub: HF_ENDPOINT is not an http or https address",
                without_token(without_user(settings_.endpoint), settings_),
                "for example https://huggingface.co; a user name or password in it is not taken");
  if (!is_hub(*url, endpoint_))
    return fail(not_a_hub("its list goes on at another host, " + url->host, asked, *url));
  Patience patience(settings_);
  while (true) {
    HttpRequest request;
    request.url = *url;
    request.timeout = settings_.metadata_timeout;
    request.max_body = kMaxJson;
    Url at;
    const HttpAnswer answer = follow(std::move(request), true, at);
    if (answer.is_success()) {
      auto value = parse_json(answer.body, at.shown(), {.max_depth = 64, .allow_bare_constants = false});
      if (kind) *kind = Refusal::kNotAHub;
      if (!value) return fail(not_a_hub("the answer is not JSON", asked, at));
      HubJson result{std::move(*value), next_page(answer.header("link"))};
      if (!result.next.empty()) {
        const auto next = resolve_url(at, result.next);
        result.next = next ? next->text() : std::string();
      }
      return result;
    }
    if (patience.waits_after(answer)) continue;
    if (kind) *kind = refusal_of(answer);
    return fail(refusal_error(answer, asked, at, settings_));
  }
}

Result<FileHead> HubClient::head(const Asked& asked, Refusal* kind) {
  const auto url = parse_url(settings_.endpoint + "/" + quoted(asked.repo, true) + "/resolve/" +
                             quoted(asked.revision, false) + "/" + quoted(asked.file, true));
  if (!url)
    return fail(ErrorCode::kNetwork, "asking the hub: the file's name does not fit an address", asked.place(),
                "check HF_ENDPOINT and the name");
  Patience patience(settings_);
  while (true) {
    HttpRequest request;
    request.is_head = true;
    request.url = *url;
    request.timeout = settings_.metadata_timeout;
    Url at;
    const HttpAnswer answer = follow(std::move(request), true, at);
    if (answer.is_success() || is_redirect(answer)) {
      if (kind) *kind = Refusal::kNotAHub;
      FileHead head;
      head.commit = answer.header("x-repo-commit");
      if (!is_hex(head.commit, 40)) return fail(not_a_hub("it names no commit (X-Repo-Commit)", asked, at));
      const std::string_view linked = answer.header("x-linked-etag");
      head.etag = without_quotes(linked.empty() ? answer.header("etag") : linked);
      if (!is_hex(head.etag, 40) && !is_hex(head.etag, 64))
        return fail(not_a_hub("it gives the file no digest (ETag)", asked, at));
      head.size = number_of(answer.header("x-linked-size"));
      if (!head.size && !is_redirect(answer)) head.size = number_of(answer.header("content-length"));
      head.location = at;
      if (is_redirect(answer)) head.location = *resolve_url(at, answer.header("location"));
      return head;
    }
    if (patience.waits_after(answer)) continue;
    if (kind) *kind = refusal_of(answer);
    return fail(refusal_error(answer, asked, at, settings_));
  }
}

HttpAnswer HubClient::bytes(const Url& location, std::int64_t first, std::int64_t last,
                            std::optional<std::int64_t> size, const Take& take) {
  HttpRequest request;
  request.url = location;
  request.timeout = settings_.download_timeout;
  if (first > 0 || last >= 0)
    request.headers.push_back(last >= 0 ? fmt::format("Range: bytes={}-{}", first, last)
                                        : fmt::format("Range: bytes={}-", first));
  std::int64_t at = -1;
  bool is_wrong_range = false;
  Url final_url;
  HttpAnswer answer =
      follow(std::move(request), false, final_url, [&](const HttpAnswer& head, std::string_view piece) {
        if (at < 0) {
          at = head.status == 206 ? first_of(head).value_or(-1) : 0;
          is_wrong_range = head.status == 206 && (at != first || is_of_another(head, size));
          if (is_wrong_range) return false;
        }
        const std::int64_t place = at;
        at += static_cast<std::int64_t>(piece.size());
        return take(place, piece);
      });
  if (answer.fault == Fault::kStopped) answer.fault = Fault::kNone;
  if (is_wrong_range) {
    answer.fault = Fault::kOther;
    answer.reason = fmt::format("{} answers with another range than the one asked for, {}", final_url.shown(),
                                answer.header("content-range"));
  }
  return answer;
}

Result<std::string> HubClient::range(const FileHead& head, std::int64_t first, std::int64_t last,
                                     const Asked& asked) {
  const auto wanted = static_cast<std::size_t>(last - first + 1);
  Patience patience(settings_);
  Url location = head.location;
  bool may_ask_again = true;
  while (true) {
    std::string text;
    std::int64_t seen = 0;
    HttpAnswer answer = bytes(location, first, last, head.size, [&](std::int64_t at, std::string_view piece) {
      seen = at + static_cast<std::int64_t>(piece.size());
      if (at < first)
        piece.remove_prefix(static_cast<std::size_t>(
            std::min<std::int64_t>(first - at, static_cast<std::int64_t>(piece.size()))));
      const bool is_more = piece.size() > wanted - text.size();
      text += piece.substr(0, wanted - text.size());
      // A range that is honoured ends by itself: stopping it would close the connection.
      return !is_more && (seen < first ? seen < kMaxSkipped : true);
    });
    if (answer.status / 100 == 2 && text.size() == wanted) return text;  // also when it is cut behind them
    if (answer.status == 403 && may_ask_again && !is_hub(location, endpoint_)) {
      may_ask_again = false;  // a signed address lives for minutes
      PLIMSOLL_TRY(const FileHead fresh, this->head(asked));
      location = fresh.location;
      continue;
    }
    if (answer.is_success()) {
      answer.fault = Fault::kCut;
      answer.reason = "the answer is shorter than the range";
    }
    if (patience.waits_after(answer)) continue;
    return fail(refusal_error(answer, asked, location, settings_));
  }
}

}  // namespace plimsoll::artifact
