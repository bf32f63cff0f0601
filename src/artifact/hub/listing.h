// SPDX-License-Identifier: Apache-2.0
// What does a hub's answer say about a repository and its files? Reads the JSON of /api/models, of the tree
// and of a cached tree; every name, size and digest is checked before anybody acts on it. Pure. Format:
// docs/formats/hub.md.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/result.h"

namespace plimsoll::artifact {

/// "org/name" with an optional "@revision" behind it.
struct HubId {
  std::string repo;
  std::string revision;  // empty: none was given
};
/// The parts of a hub id; nothing when `text` is none (a path, a name without org, a file's ending).
std::optional<HubId> parse_hub_id(std::string_view text);

/// True for 40 lower-case hex digits.
bool is_commit(std::string_view text);

/// True for a relative path that is safe to make below a folder of ours: inside it, no control characters,
/// no empty or dotted part, no part of more than 255 bytes, at most 16 parts.
bool is_safe_name(std::string_view path);

struct HubFile {
  std::string path;
  std::int64_t bytes = 0;
  std::string git_oid;   // 40 hex digits, or empty
  std::string sha256;    // of a large file (LFS), or empty
  std::string xet_hash;  // or empty

  friend bool operator==(const HubFile&, const HubFile&) = default;

  /// The name of its blob, and its digest.
  const std::string& etag() const { return sha256.empty() ? git_oid : sha256; }
};

struct HubInfo {
  std::string id;      // the repository's name of today
  std::string commit;  // of the revision that was asked for
  std::string license;
  bool is_gated = false, is_private = false, is_disabled = false;
  std::optional<std::int64_t> safetensors_total;
};

/// Reads the answer of /api/models/REPO/revision/REV.
/// Errors: kNetwork when it names no commit of 40 digits.
Result<HubInfo> read_info(const Json& answer);

/// Appends the files of one page of the tree.
/// Errors: kNetwork when it is no list, a name is not safe, a size is none, or there are more than 100,000.
Status read_tree_page(const Json& page, std::vector<HubFile>& files);

/// Holds the names of a whole listing against each other.
/// Errors: kNetwork when two are equal, or one is a file and a folder: they cannot both be made.
Status check_tree(const std::vector<HubFile>& files);

/// trees/COMMIT.json of the shared cache, in both directions. Nothing when it is not of version 1.
std::optional<std::vector<HubFile>> read_cached_tree(const Json& text);
Json cached_tree(const std::vector<HubFile>& files);

}  // namespace plimsoll::artifact
