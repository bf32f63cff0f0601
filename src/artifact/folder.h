// SPDX-License-Identifier: Apache-2.0
// Which files does a model folder hold, and may a name be followed there? Walks without following folder
// links and with bounds; knows the hub cache's layout. Pure but for reading the file system.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "artifact/artifact.h"
#include "base/finding.h"
#include "base/json.h"
#include "base/result.h"

namespace plimsoll::artifact {

/// True for a relative path without "..", which cannot name anything outside the folder it is taken in.
bool is_inside(std::string_view path);

struct FolderListing {
  std::vector<File> files;            // regular files, also through links, sorted by path
  std::vector<std::string> dangling;  // links whose target is missing
  std::vector<std::string> outside;   // links that leave the folder (and its hub cache)
  struct NoFile {
    std::string path, kind;  // kind: "a folder", "a named pipe", ...
  };
  std::vector<NoFile> no_files;  // what is no file under a name that has a role, as model.safetensors
  struct Unreadable {
    std::string path, reason;  // path: empty for the folder itself
    bool is_folder = false;
  };
  std::vector<Unreadable> unreadable;  // what the system does not let us look at
  std::int64_t num_left_out = 0;       // files of a folder too large to be listed whole
};
/// Lists a folder down to four levels. Of the first 20,000 entries all files are listed, of the next million
/// only those whose name has a role.
FolderListing list_folder(const std::string& folder);

struct HubPlace {
  std::string folder;  // the folder that holds the files
  std::string commit;  // empty outside a hub cache
};
/// For a hub cache's folder (models--org--name, with refs/ and snapshots/): the snapshot that refs/main
/// names, or the only one there is. For a snapshot itself: its commit. For any other folder: the folder.
HubPlace resolve_hub_cache(const std::string& folder);

struct JsonFile {
  Json value;
  bool has_bom = false;  // a UTF-8 byte order mark stood before the text
};
/// Reads a JSON file as loaders in practice do: a byte order mark is skipped.
/// Errors: kMalformed as read_json_file, and for more than `max_values` values; the sentence names line and
/// column of a syntax error.
Result<JsonFile> read_json_with_bom(const std::string& path, std::int64_t max_bytes,
                                    std::int64_t max_values = JsonReadOptions().max_values);

constexpr std::size_t kMaxDuplicates = 20;
/// JSON pointers of keys that stand twice in one object of `value`, each once: the first kMaxDuplicates.
std::vector<std::string> duplicate_keys(const Json& value);

}  // namespace plimsoll::artifact
