// SPDX-License-Identifier: Apache-2.0
// Where does the shared cache of hub files keep what? The layout of huggingface_hub, in both directions:
// blobs by digest, snapshots of links by commit, refs, files known to be absent, listings. Writing is best
// effort where a read-only cache must work. A value; several processes may use one cache at once. Format:
// docs/formats/hub.md, section 3.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "artifact/hub/listing.h"
#include "base/result.h"

namespace plimsoll::artifact {

class HubCache {
 public:
  /// `root` is HF_HUB_CACHE. Nothing is made until something is written.
  HubCache(std::string root, std::string repo, bool uses_links);

  const std::string& folder() const { return folder_; }  // root/models--org--name
  std::string snapshot(std::string_view commit) const;
  /// Path of a file in a snapshot; empty when it is not there, or leads to nothing.
  std::string file(std::string_view commit, std::string_view path) const;
  std::string blob(std::string_view etag) const;

  /// The commit that a revision was last seen at: itself, or what refs/ holds. Empty: not known.
  std::string commit_of(std::string_view revision) const;
  /// Notes it; failure is no error.
  void set_ref(std::string_view revision, std::string_view commit) const;

  /// The listing of a commit, when it was kept.
  std::optional<std::vector<HubFile>> tree(std::string_view commit) const;
  void keep_tree(std::string_view commit, const std::vector<HubFile>& files) const;

  bool is_known_absent(std::string_view commit, std::string_view path) const;
  void note_absent(std::string_view commit, std::string_view path) const;

  /// Makes the folders that a file of `commit` needs, and CACHEDIR.TAG.
  /// Errors: kUsage when the cache cannot be written.
  Status prepare(std::string_view commit, std::string_view path) const;
  /// Makes snapshots/COMMIT/PATH show blobs/ETAG: a relative link, or the file itself where there are none
  /// (moved there when the blob `is_new`, copied otherwise).
  /// Errors: kUsage when the cache cannot be written.
  Status show(std::string_view commit, std::string_view path, std::string_view etag, bool is_new) const;

  /// Path of the lock that writers of a blob hold.
  std::string lock_path(std::string_view etag) const;

 private:
  std::string root_, folder_, name_;
  bool uses_links_;
};

}  // namespace plimsoll::artifact
