// SPDX-License-Identifier: Apache-2.0
#include "artifact/hub/transport.h"

#include <curl/curl.h>
#include <dlfcn.h>

#include <string>

#include "base/log.h"
#include "base/result.h"

namespace plimsoll::artifact {
namespace {

constexpr std::size_t kMaxHeaders = 200;
constexpr std::size_t kMaxHeaderBytes = 16 * 1024;

// libcurl brings thirty libraries, whose loading takes longer than the inspection of a folder: they come when
// the first exchange with a hub does. Never unloaded.
struct Library {
  decltype(&::curl_easy_init) easy_init = nullptr;
  decltype(&::curl_easy_cleanup) easy_cleanup = nullptr;
  decltype(&::curl_easy_reset) easy_reset = nullptr;
  decltype(&::curl_easy_setopt) easy_setopt = nullptr;
  decltype(&::curl_easy_getinfo) easy_getinfo = nullptr;
  decltype(&::curl_easy_perform) easy_perform = nullptr;
  decltype(&::curl_easy_strerror) easy_strerror = nullptr;
  decltype(&::curl_slist_append) slist_append = nullptr;
  decltype(&::curl_slist_free_all) slist_free_all = nullptr;
  std::string fault;  // why it cannot be used; empty when it can

  Library() {
    // The name of its interface since 2006; what it had to hold then and now is in the header we compile
    // with.
    void* handle = dlopen("libcurl.so.4", RTLD_NOW | RTLD_LOCAL);
    decltype(&::curl_global_init) global_init = nullptr;
    const bool is_complete =
        handle && find(handle, "curl_global_init", global_init) &&
        find(handle, "curl_easy_init", easy_init) && find(handle, "curl_easy_cleanup", easy_cleanup) &&
        find(handle, "curl_easy_reset", easy_reset) && find(handle, "curl_easy_setopt", easy_setopt) &&
        find(handle, "curl_easy_getinfo", easy_getinfo) && find(handle, "curl_easy_perform", easy_perform) &&
        find(handle, "curl_easy_strerror", easy_strerror) &&
        find(handle, "curl_slist_append", slist_append) &&
        find(handle, "curl_slist_free_all", slist_free_all);
    if (!is_complete) {
      const char* reason = dlerror();
      fault = std::string("libcurl cannot be loaded: ") + (reason ? reason : "no reason given");
    } else if (global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) {
      fault = "libcurl does not start";
    }
  }

 private:
  template <class Function>
  static bool find(void* handle, const char* name, Function& function) {
    function = reinterpret_cast<Function>(dlsym(handle, name));
    return function != nullptr;
  }
};

const Library& library() {
  static const Library loaded;
  return loaded;
}

Fault fault_of(CURLcode code) {
  switch (code) {
    case CURLE_OK:
      return Fault::kNone;
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_RESOLVE_PROXY:
      return Fault::kResolve;
    case CURLE_COULDNT_CONNECT:
      return Fault::kConnect;
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_SSL_CERTPROBLEM:
    case CURLE_SSL_CIPHER:
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_ISSUER_ERROR:
      return Fault::kTls;
    case CURLE_OPERATION_TIMEDOUT:
      return Fault::kTimeout;
    case CURLE_PARTIAL_FILE:
    case CURLE_RECV_ERROR:
    case CURLE_SEND_ERROR:
    case CURLE_GOT_NOTHING:
    case CURLE_HTTP2:
    case CURLE_HTTP2_STREAM:
      return Fault::kCut;
    default:
      return Fault::kOther;
  }
}

// What one exchange fills while libcurl runs it.
struct Exchange {
  CURL* handle;
  const HttpRequest& request;
  const Receiver& receiver;
  HttpAnswer answer;
  Fault own_fault = Fault::kNone;  // why we stopped it ourselves
};

std::size_t on_header(char* data, std::size_t size, std::size_t count, void* user) {
  auto& exchange = *static_cast<Exchange*>(user);
  std::string_view line(data, size * count);
  while (line.ends_with('\n') || line.ends_with('\r')) line.remove_suffix(1);
  if (line.starts_with("HTTP/")) {  // after "100 Continue" comes another head
    exchange.answer.headers.clear();
    return size * count;
  }
  const std::size_t colon = line.find(':');
  if (colon == std::string_view::npos || line.size() > kMaxHeaderBytes ||
      exchange.answer.headers.size() >= kMaxHeaders)
    return size * count;
  std::string name(line.substr(0, colon));
  for (char& c : name) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  std::string_view value = line.substr(colon + 1);
  while (value.starts_with(' ') || value.starts_with('\t')) value.remove_prefix(1);
  while (value.ends_with(' ') || value.ends_with('\t')) value.remove_suffix(1);
  exchange.answer.headers.emplace_back(std::move(name), std::string(value));
  return size * count;
}

template <class Value>
void set(CURL* handle, CURLoption option, Value value) {
  PLIMSOLL_CHECK(library().easy_setopt(handle, option, value) == CURLE_OK,
                 "libcurl knows the options we set");
}

std::size_t on_body(char* data, std::size_t size, std::size_t count, void* user) {
  auto& exchange = *static_cast<Exchange*>(user);
  const std::string_view piece(data, size * count);
  long status = 0;
  library().easy_getinfo(exchange.handle, CURLINFO_RESPONSE_CODE, &status);
  exchange.answer.status = static_cast<int>(status);
  // The body of a refusal is a short text, and never what the receiver waits for.
  const bool is_wanted = exchange.receiver && status >= 200 && status < 300;
  if (is_wanted) {
    if (exchange.receiver(exchange.answer, piece)) return piece.size();
    exchange.own_fault = Fault::kStopped;
    return 0;
  }
  const auto taken = static_cast<std::int64_t>(exchange.answer.body.size() + piece.size());
  const std::int64_t limit = exchange.receiver ? 64 * 1024 : exchange.request.max_body;
  if (taken > limit) {
    exchange.own_fault = Fault::kTooLarge;
    return 0;
  }
  exchange.answer.body += piece;
  return piece.size();
}

void set_up(CURL* handle, const HttpRequest& request, const std::string& address, bool is_streamed) {
  library().easy_reset(handle);  // keeps the connections
  set(handle, CURLOPT_URL, address.c_str());
  set(handle, CURLOPT_PROTOCOLS_STR, "http,https");
  set(handle, CURLOPT_FOLLOWLOCATION, 0L);
  set(handle, CURLOPT_NOSIGNAL, 1L);  // threads
  set(handle, CURLOPT_NOBODY, request.is_head ? 1L : 0L);
  set(handle, CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(request.timeout.count()));
  // An answer that is kept in memory is small: a trickle that never ends is a fault as well.
  if (!is_streamed) set(handle, CURLOPT_TIMEOUT_MS, 6 * static_cast<long>(request.timeout.count()));
  // Silence, not length, is what a time-out means for a download of hours.
  set(handle, CURLOPT_LOW_SPEED_LIMIT, 1L);
  set(handle, CURLOPT_LOW_SPEED_TIME, static_cast<long>((request.timeout.count() + 999) / 1000));
  set(handle, CURLOPT_SSL_VERIFYPEER, 1L);
  set(handle, CURLOPT_SSL_VERIFYHOST, 2L);
}

}  // namespace

struct Transport::State {
  CURL* handle = nullptr;
  std::string ca_file, ca_folder;
};

std::string_view HttpAnswer::header(std::string_view name) const {
  for (auto entry = headers.rbegin(); entry != headers.rend(); ++entry)
    if (entry->first == name) return entry->second;
  return {};
}

Transport::Transport(const HubSettings& settings) : state_(std::make_unique<State>()) {
  if (library().fault.empty()) {
    state_->handle = library().easy_init();
    PLIMSOLL_CHECK(state_->handle != nullptr, "libcurl has memory for a handle");
  }
  state_->ca_file = settings.ca_file;
  state_->ca_folder = settings.ca_folder;
}

Transport::~Transport() {
  if (state_->handle) library().easy_cleanup(state_->handle);
}

HttpAnswer Transport::send(const HttpRequest& request, const Receiver& receiver) {
  CURL* handle = state_->handle;
  if (!handle) {
    HttpAnswer none;
    none.fault = Fault::kOther;
    none.reason = library().fault;
    return none;
  }
  const std::string address = request.url.text();
  set_up(handle, request, address, receiver != nullptr);
  if (!state_->ca_file.empty()) set(handle, CURLOPT_CAINFO, state_->ca_file.c_str());
  if (!state_->ca_folder.empty()) set(handle, CURLOPT_CAPATH, state_->ca_folder.c_str());
  curl_slist* lines = nullptr;
  for (const std::string& line : request.headers) lines = library().slist_append(lines, line.c_str());
  set(handle, CURLOPT_HTTPHEADER, lines);
  Exchange exchange{handle, request, receiver, {}, Fault::kNone};
  set(handle, CURLOPT_HEADERFUNCTION, &on_header);
  set(handle, CURLOPT_HEADERDATA, &exchange);
  set(handle, CURLOPT_WRITEFUNCTION, &on_body);
  set(handle, CURLOPT_WRITEDATA, &exchange);
  char reason[CURL_ERROR_SIZE] = "";
  set(handle, CURLOPT_ERRORBUFFER, reason);
  const CURLcode code = library().easy_perform(handle);
  library().slist_free_all(lines);
  HttpAnswer answer = std::move(exchange.answer);
  long status = 0;
  library().easy_getinfo(handle, CURLINFO_RESPONSE_CODE, &status);
  answer.status = static_cast<int>(status);
  answer.fault = exchange.own_fault != Fault::kNone ? exchange.own_fault : fault_of(code);
  if (answer.fault != Fault::kNone) answer.reason = reason[0] ? reason : library().easy_strerror(code);
  library().easy_setopt(handle, CURLOPT_ERRORBUFFER, nullptr);
  log_debug(std::string(request.is_head ? "HEAD " : "GET ") + request.url.shown() + " -> " +
            (answer.fault == Fault::kNone ? std::to_string(answer.status) : answer.reason));
  return answer;
}

}  // namespace plimsoll::artifact
