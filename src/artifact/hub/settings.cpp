// SPDX-License-Identifier: Apache-2.0
#include "artifact/hub/settings.h"

#include <charconv>
#include <cstdlib>
#include <string_view>

#include "base/home_folder.h"
#include "base/mapped_file.h"

namespace plimsoll::artifact {
namespace {

constexpr std::int64_t kMaxTokenFile = 64 * 1024;

bool is_set(const HubSettings::Lookup& lookup, const char* name) {
  std::string value = lookup(name).value_or("");
  for (char& c : value) c = c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  return value == "1" || value == "ON" || value == "YES" || value == "TRUE";
}

bool is_name_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

// $NAME and ${NAME}; an unknown name stays as it is.
std::string with_variables(const HubSettings::Lookup& lookup, std::string_view text) {
  std::string result;
  for (std::size_t at = 0; at < text.size();) {
    if (text[at] != '$') {
      result += text[at++];
      continue;
    }
    const bool is_braced = at + 1 < text.size() && text[at + 1] == '{';
    const std::size_t begin = at + (is_braced ? 2 : 1);
    std::size_t end = begin;
    while (end < text.size() && is_name_character(text[end])) ++end;
    const std::size_t next = is_braced ? end + 1 : end;
    const bool is_closed = !is_braced || (end < text.size() && text[end] == '}');
    const auto value =
        end > begin && is_closed ? lookup(std::string(text.substr(begin, end - begin))) : std::nullopt;
    if (value) {
      result += *value;
      at = next;
    } else {
      result += text[at++];
    }
  }
  return result;
}

std::string expanded(const HubSettings::Lookup& lookup, const std::string& path) {
  std::string result = with_variables(lookup, path);
  // As os.path.expanduser, which takes an empty HOME for the root.
  if (result == "~" || result.starts_with("~/")) {
    const auto home = lookup("HOME");  // the password database may be on a network: asked only without
    result = (home ? *home : home_of_user()) + result.substr(1);
  }
  return result;
}

std::optional<std::string> path_from(const HubSettings::Lookup& lookup, const char* name) {
  const auto value = lookup(name);
  if (!value || value->empty()) return std::nullopt;
  return expanded(lookup, *value);
}

std::string stripped(std::string text) {
  std::erase_if(text, [](char c) { return c == '\n' || c == '\r'; });
  const std::size_t begin = text.find_first_not_of(" \t");
  if (begin == std::string::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t") - begin + 1);
}

std::string token_from(const HubSettings::Lookup& lookup, const std::string& home) {
  for (const char* name : {"HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"})
    if (const auto value = lookup(name))
      if (std::string token = stripped(*value); !token.empty()) return token;
  const std::string path = path_from(lookup, "HF_TOKEN_PATH").value_or(home + "/token");
  const auto text = read_file(path, kMaxTokenFile);
  return text ? stripped(*text) : std::string();
}

std::chrono::milliseconds seconds_from(const HubSettings::Lookup& lookup, const char* name,
                                       std::chrono::milliseconds otherwise, int least = 1) {
  const std::string text = lookup(name).value_or("");
  int seconds = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  if (error != std::errc{} || end != text.data() + text.size() || seconds < least || seconds > 86'400)
    return otherwise;
  return std::chrono::seconds(seconds);
}

}  // namespace

HubSettings HubSettings::from(const Lookup& lookup) {
  HubSettings settings;
  if (const auto endpoint = lookup("HF_ENDPOINT"); endpoint && !endpoint->empty())
    settings.endpoint = *endpoint;
  else if (is_set(lookup, "HUGGINGFACE_CO_STAGING"))
    settings.endpoint = "https://hub-ci.huggingface.co";
  while (settings.endpoint.ends_with('/')) settings.endpoint.pop_back();
  const std::string cache_home = path_from(lookup, "XDG_CACHE_HOME").value_or(expanded(lookup, "~/.cache"));
  const std::string home = path_from(lookup, "HF_HOME").value_or(cache_home + "/huggingface");
  settings.cache = home + "/hub";
  if (const auto old = path_from(lookup, "HUGGINGFACE_HUB_CACHE")) settings.cache = *old;
  if (const auto cache = path_from(lookup, "HF_HUB_CACHE")) settings.cache = *cache;
  settings.token = token_from(lookup, home);
  // An implicit token is one that no flag asked for; there is no such flag here.
  if (is_set(lookup, "HF_HUB_DISABLE_IMPLICIT_TOKEN")) settings.token.clear();
  settings.is_offline = is_set(lookup, "HF_HUB_OFFLINE") || is_set(lookup, "TRANSFORMERS_OFFLINE");
  settings.uses_links = !is_set(lookup, "HF_HUB_DISABLE_SYMLINKS");
  settings.metadata_timeout = seconds_from(lookup, "HF_HUB_ETAG_TIMEOUT", settings.metadata_timeout);
  settings.download_timeout = seconds_from(lookup, "HF_HUB_DOWNLOAD_TIMEOUT", settings.download_timeout);
  settings.max_wait = seconds_from(lookup, "PLIMSOLL_HUB_MAX_WAIT_S", settings.max_wait, 0);
  settings.ca_file = lookup("SSL_CERT_FILE").value_or("");
  settings.ca_folder = lookup("SSL_CERT_DIR").value_or("");
  return settings;
}

HubSettings HubSettings::from_environment() {
  return from([](const std::string& name) -> std::optional<std::string> {
    const char* value = std::getenv(name.c_str());
    return value ? std::optional<std::string>(value) : std::nullopt;
  });
}

std::string without_token(std::string text, const HubSettings& settings) {
  if (settings.token.empty()) return text;
  for (std::size_t at = text.find(settings.token); at != std::string::npos;
       at = text.find(settings.token, at + 3))
    text.replace(at, settings.token.size(), "***");
  return text;
}

}  // namespace plimsoll::artifact
