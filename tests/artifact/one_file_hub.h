// SPDX-License-Identifier: Apache-2.0
// A hub's answers about one large file, for the tests of the wire and of downloads.
#pragma once

#include <algorithm>
#include <span>
#include <string>
#include <vector>

#include "artifact/hub/listing.h"
#include "base/hash.h"
#include "tests/artifact/scripted_hub.h"

namespace plimsoll::testing {

inline const std::string kCommit(40, 'c');
inline const std::string kContent = "the content of a large file, which comes in pieces";

inline std::string sha256(const std::string& text) {
  return sha256_hex(std::as_bytes(std::span(text)));
}

inline artifact::HubFile large_file() {
  return {"m.safetensors",
          static_cast<std::int64_t>(kContent.size()),
          std::string(40, 'a'),
          sha256(kContent),
          {}};
}

inline std::string head_of(const artifact::HubFile& file, std::vector<std::string> more = {}) {
  more.push_back("X-Repo-Commit: " + kCommit);
  more.push_back("X-Linked-Size: " + std::to_string(file.bytes));
  more.push_back("X-Linked-Etag: \"" + file.etag() + "\"");
  return http_answer(200, more, "");
}

// The asked range of the content as a 206, or all of it.
inline std::string ranged(const AskedRequest& request, const std::string& content) {
  const std::string range = request.header("range");
  if (range.empty()) return http_answer(200, {}, content);
  const std::size_t first = std::stoul(range.substr(6)), dash = range.find('-');
  const std::size_t last = dash + 1 < range.size()
                               ? std::min<std::size_t>(std::stoul(range.substr(dash + 1)), content.size() - 1)
                               : content.size() - 1;
  return http_answer(206,
                     {"Content-Range: bytes " + std::to_string(first) + "-" + std::to_string(last) + "/" +
                      std::to_string(content.size())},
                     content.substr(first, last - first + 1));
}

}  // namespace plimsoll::testing
