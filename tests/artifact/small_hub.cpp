// SPDX-License-Identifier: Apache-2.0
#include "tests/artifact/small_hub.h"

#include <algorithm>
#include <span>

#include "base/hash.h"
#include "base/json.h"

namespace plimsoll::testing {
namespace {

std::string git_digest(const std::string& content) {
  const std::string blob = "blob " + std::to_string(content.size()) + std::string(1, '\0') + content;
  Digest digest(DigestKind::kSha1);
  digest.add(std::as_bytes(std::span(blob)));
  return digest.finish();
}

std::string sha256(const std::string& content) {
  return sha256_hex(std::as_bytes(std::span(content)));
}

bool is_large(const std::string& path) {
  return path.ends_with(".safetensors") || path.ends_with(".gguf");
}

std::string content(const AskedRequest& request, const std::string& path, const std::string& text) {
  const std::string etag = is_large(path) ? sha256(text) : git_digest(text);
  std::vector<std::string> headers = {"X-Repo-Commit: " + kCommit, "ETag: \"" + etag + "\""};
  const std::string range = request.header("range");
  if (range.empty()) return http_answer(200, headers, text);
  const std::size_t first = std::stoul(range.substr(6));
  const std::size_t last = std::min(std::stoul(range.substr(range.find('-') + 1)), text.size() - 1);
  headers.push_back("Content-Range: bytes " + std::to_string(first) + "-" + std::to_string(last) + "/" +
                    std::to_string(text.size()));
  return http_answer(206, headers, text.substr(first, last - first + 1));
}

}  // namespace

std::string small_weights(std::size_t padding) {
  std::string header = R"({"w":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]}})";
  header.append(padding, ' ');
  while (header.size() % 8 != 0) header += ' ';
  std::string text;
  for (int i = 0; i < 8; ++i) text += static_cast<char>(header.size() >> (8 * i) & 0xFF);
  return text + header + std::string(24, '\x01');
}

std::string SmallHub::answer(const AskedRequest& request) const {
  if (request.path.starts_with("/api/models/" + id + "/tree/")) return http_answer(200, {}, tree());
  if (request.path == "/api/models/org/small/revision/gone")
    return http_answer(404, {"X-Error-Code: RevisionNotFound"}, "");
  if (request.path.starts_with("/api/models/org/small/revision/"))
    return http_answer(200, {}, R"({"id":")" + id + R"(","sha":")" + kCommit + R"(","gated":)" + gated + "}");
  const std::string resolve = "/" + id + "/resolve/" + kCommit + "/";
  if (!request.path.starts_with(resolve)) return http_answer(404, {"X-Error-Code: RepoNotFound"}, "");
  const auto file = files.find(request.path.substr(resolve.size()));
  if (file == files.end()) return http_answer(404, {"X-Error-Code: EntryNotFound"}, "");
  if (file_status != 200) return http_answer(file_status, file_headers, "");
  if (cuts_files && request.method == "GET")
    return http_answer(200, {"Content-Length: " + std::to_string(file->second.size())},
                       file->second.substr(0, 1));
  return content(request, file->first, file->second);
}

std::string SmallHub::tree() const {
  Json list = Json::array();
  for (const auto& [path, text] : files) {
    const auto stated = stated_bytes.find(path);
    const std::int64_t bytes =
        stated == stated_bytes.end() ? static_cast<std::int64_t>(text.size()) : stated->second;
    Json entry = Json::object({{"type", "file"}, {"path", path}, {"size", bytes}, {"oid", git_digest(text)}});
    if (is_large(path)) entry.set("lfs", Json::object({{"oid", sha256(text)}, {"size", bytes}}));
    list.push_back(std::move(entry));
  }
  return dump(list);
}

}  // namespace plimsoll::testing
