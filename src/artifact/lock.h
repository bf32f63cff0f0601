// SPDX-License-Identifier: Apache-2.0
// Which exact files, of which commit, were looked at and deployed? The lock record that `pull` writes, and
// the check of a model against it. Values; pure but for reading files. Format: docs/formats/lock.md.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "artifact/artifact.h"
#include "base/finding.h"
#include "base/json.h"
#include "base/result.h"

namespace plimsoll::artifact {

struct LockedFile {
  std::string path;
  std::int64_t bytes = 0;
  std::string sha256;  // 64 hex digits, or empty when it was not known
};

struct LockRecord {
  std::string repo;      // org/name
  std::string revision;  // that was asked for
  std::string commit;
  std::vector<LockedFile> files;  // sorted by path
  std::string license;            // empty: the hub names none
  std::string engine_name, engine_version, engine_image_digest;
  std::string chat_template_sha256;
  Json generation_config;  // the file's content, or null
  std::optional<std::int64_t> max_model_len;
};

/// The document of schema plimsoll.lock/1; what is empty is null in it.
Json to_json(const LockRecord& record);

/// Reads such a document. Errors: kMalformed when it is none, a name leads out of a folder, a size or digest
/// is none, or the repository or commit is missing.
Result<LockRecord> read_lock(const Json& document, std::string_view source);
/// Errors: as read_lock, and as read_json_file.
Result<LockRecord> read_lock_file(const std::string& path);

/// True when the file's beginning names the schema of a lock record.
bool is_lock_file(const std::string& path);

/// LOCK_MISMATCH for every locked file that the artifact lacks or that has another size, or another digest
/// where one is known; the digest of small files that are here is computed, with
/// `reads_files` that of all files. Then for a chat template or a generation_config that is another, and for
/// files that loaders read and the record does not name: an error for weights and their index, else a
/// warning. LOCK_NO_DIGEST where the record knows sizes alone.
Findings check_lock(const LockRecord& record, const Artifact& artifact, bool reads_files);

/// SHA-256 of the text of the chat template that is used (stored_chat_template); empty when there is none.
std::string chat_template_digest(const Artifact& artifact);

}  // namespace plimsoll::artifact
