// SPDX-License-Identifier: Apache-2.0
// Which hub is asked, with which token, and where are its files kept? Reads the variables that
// huggingface_hub reads, with its defaults. Plain values; `from` is pure but for the token file.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>

namespace plimsoll::artifact {

struct HubSettings {
  std::string endpoint = "https://huggingface.co";  // without a slash at its end
  std::string token;                                // empty: none. Never printed
  std::string cache;                                // folder of the shared cache (HF_HUB_CACHE)
  std::string ca_file, ca_folder;                   // empty: the system's certificates
  bool is_offline = false;
  bool uses_links = true;                              // false: snapshots hold the files themselves
  std::chrono::milliseconds metadata_timeout{10'000};  // of a connection, and of silence on it
  std::chrono::milliseconds download_timeout{10'000};
  std::chrono::milliseconds max_wait{30'000};  // for a hub that asks to come back later, per request
  std::chrono::milliseconds first_pause{250};  // before a second try; doubled for each one after

  using Lookup = std::function<std::optional<std::string>(const std::string& name)>;
  /// Settings from variables that `lookup` knows.
  static HubSettings from(const Lookup& lookup);
  /// Settings from this process's environment.
  static HubSettings from_environment();
};

/// `text` with every occurrence of the token made unreadable: what a server echoes is not passed on.
std::string without_token(std::string text, const HubSettings& settings);

}  // namespace plimsoll::artifact
