// SPDX-License-Identifier: Apache-2.0
#include "tests/artifact/scripted_hub.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace plimsoll::testing {
namespace {

constexpr std::string_view kClose = "Connection: close\r\n";

}  // namespace

std::string AskedRequest::header(const std::string& name) const {
  std::string lines = head;
  std::transform(lines.begin(), lines.end(), lines.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  const std::size_t at = lines.find("\n" + name + ": ");
  if (at == std::string::npos) return {};
  const std::size_t begin = at + name.size() + 3;
  return head.substr(begin, head.find('\r', begin) - begin);
}

std::string http_answer(int status, const std::vector<std::string>& headers, const std::string& body) {
  std::string text = "HTTP/1.1 " + std::to_string(status) + " X\r\n" + std::string(kClose);
  bool has_length = false;
  for (const std::string& line : headers) {
    text += line + "\r\n";
    has_length |= line.starts_with("Content-Length");
  }
  if (!has_length) text += "Content-Length: " + std::to_string(body.size()) + "\r\n";
  return text + "\r\n" + body;
}

std::string kept_open(std::string answer) {
  answer.erase(answer.find(kClose), kClose.size());
  return answer;
}

ScriptedHub::ScriptedHub(Script script) : script_(std::move(script)) {
  listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  if (::bind(listener_, reinterpret_cast<sockaddr*>(&address), size) != 0 || ::listen(listener_, 64) != 0 ||
      ::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size) != 0)
    std::abort();
  port_ = ntohs(address.sin_port);
  thread_ = std::thread([this] { serve(); });
}

ScriptedHub::~ScriptedHub() {
  ::shutdown(listener_, SHUT_RDWR);
  if (const int connection = open_connection_; connection >= 0) ::shutdown(connection, SHUT_RDWR);
  thread_.join();
  ::close(listener_);
}

void ScriptedHub::serve() {
  while (true) {
    const int connection = ::accept(listener_, nullptr, nullptr);
    if (connection < 0) return;
    ++num_connections_;
    open_connection_ = connection;
    while (answer(connection)) {
    }
    open_connection_ = -1;
    ::close(connection);
  }
}

// True when the connection stays open.
bool ScriptedHub::answer(int connection) {
  std::string head;
  char buffer[4096];
  while (head.find("\r\n\r\n") == std::string::npos) {
    const ssize_t got = ::recv(connection, buffer, sizeof(buffer), 0);
    if (got <= 0) return false;
    head.append(buffer, static_cast<std::size_t>(got));
  }
  AskedRequest request;
  const std::size_t first = head.find(' '), second = head.find(' ', first + 1);
  request.method = head.substr(0, first);
  request.path = head.substr(first + 1, second - first - 1);
  request.head = head;
  std::string text = script_(request);
  {
    const std::lock_guard lock(mutex_);
    requests_.push_back(request);
  }
  if (request.method == "HEAD") text.resize(text.find("\r\n\r\n") + 4);
  for (std::size_t sent = 0; sent < text.size();) {
    const ssize_t put = ::send(connection, text.data() + sent, text.size() - sent, MSG_NOSIGNAL);
    if (put <= 0) return false;
    sent += static_cast<std::size_t>(put);
  }
  return text.find(kClose) == std::string::npos;
}

artifact::HubSettings ScriptedHub::settings(const std::string& cache) const {
  artifact::HubSettings settings;
  settings.endpoint = url();
  settings.cache = cache;
  settings.max_wait = std::chrono::milliseconds(20);
  settings.first_pause = std::chrono::milliseconds(1);
  return settings;
}

std::vector<AskedRequest> ScriptedHub::requests() const {
  const std::lock_guard lock(mutex_);
  return requests_;
}

int ScriptedHub::count(const std::string& method, const std::string& part_of_path) const {
  int found = 0;
  for (const AskedRequest& request : requests())
    found += request.method == method && request.path.find(part_of_path) != std::string::npos;
  return found;
}

ScratchFolder::ScratchFolder() {
  path_ = (std::filesystem::temp_directory_path() / "plimsoll-test-XXXXXX").string();
  if (!::mkdtemp(path_.data())) std::abort();
}

ScratchFolder::~ScratchFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::string ScratchFolder::write(const std::string& name, const std::string& content) const {
  const std::filesystem::path place = path_ + "/" + name;
  std::filesystem::create_directories(place.parent_path());
  std::ofstream(place, std::ios::binary) << content;
  return place.string();
}

}  // namespace plimsoll::testing
