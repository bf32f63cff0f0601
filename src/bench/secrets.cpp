// SPDX-License-Identifier: Apache-2.0
#include "bench/secrets.h"

#include <algorithm>

namespace plimsoll::bench {
namespace {

constexpr std::size_t kLeastBytes = 6;
constexpr std::string_view kHidden = "***";

void hide(const std::string& secret, std::string& text) {
  for (std::size_t at = text.find(secret); at != text.npos; at = text.find(secret, at + kHidden.size()))
    text.replace(at, secret.size(), kHidden);
}

}  // namespace

void hide_secrets(const http::Headers& headers, std::vector<RequestRecord>& records) {
  std::vector<std::string> secrets;
  for (const auto& [name, value] : headers) {
    secrets.push_back(value);
    if (const std::size_t blank = value.find(' '); blank != value.npos)
      secrets.push_back(value.substr(blank + 1));
  }
  std::erase_if(secrets, [](const std::string& secret) { return secret.size() < kLeastBytes; });
  if (secrets.empty()) return;
  for (RequestRecord& record : records)
    for (const std::string& secret : secrets)
      for (std::string* text : {&record.text, &record.produced, &record.error_text}) hide(secret, *text);
}

std::string without_query(const std::string& target) {
  const std::size_t at = target.find('?');
  return at == target.npos ? target : target.substr(0, at + 1) + std::string(kHidden);
}

}  // namespace plimsoll::bench
