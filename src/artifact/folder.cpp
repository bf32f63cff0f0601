// SPDX-License-Identifier: Apache-2.0
#include "artifact/folder.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <optional>
#include <system_error>
#include <unordered_set>
#include <utility>

#include "artifact/content.h"
#include "artifact/json_place.h"
#include "base/mapped_file.h"

namespace plimsoll::artifact {
namespace {

namespace fs = std::filesystem;

constexpr int kMaxDepth = 4;
constexpr int kListedWhole = 20'000;  // entries that are all listed
constexpr int kLookedAt = 1'000'000;  // beyond 20,000 only names that matter are listed
constexpr std::size_t kMaxFiles = 100'000;
constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

bool starts_below(const fs::path& path, const fs::path& folder) {
  const auto [end, _] = std::mismatch(folder.begin(), folder.end(), path.begin(), path.end());
  return end == folder.end();
}

// The folder that links may point into: the model folder, or the cache entry around a snapshot.
fs::path allowed_root(const std::string& folder) {
  std::error_code error;
  const fs::path real = fs::canonical(folder, error);
  if (error) return folder;
  return real.parent_path().filename() == "snapshots" ? real.parent_path().parent_path() : real;
}

// Names that readers look for: something else in the place of such a file has to be told.
bool matters(std::string_view path) {
  const FileRole role = role_of(path);
  return role != FileRole::kOther && role != FileRole::kCode && role != FileRole::kLicense &&
         role != FileRole::kReadme;
}

std::string_view kind_of(mode_t mode) {
  if (S_ISDIR(mode)) return "a folder";
  if (S_ISFIFO(mode)) return "a named pipe";
  if (S_ISSOCK(mode)) return "a socket";
  return S_ISCHR(mode) || S_ISBLK(mode) ? "a device" : "no regular file";
}

void note_no_file(const std::string& relative, mode_t mode, FolderListing& listing) {
  // Folders of components are called "tokenizer": for them only names with an ending count.
  if (matters(relative) && (!S_ISDIR(mode) || fs::path(relative).has_extension()))
    listing.no_files.push_back({relative, std::string(kind_of(mode))});
}

void list_entry(const fs::directory_entry& entry, const std::string& relative, const fs::path& allowed,
                FolderListing& listing) {
  std::error_code error;
  const bool is_link = entry.is_symlink(error);
  struct stat status{};  // kind and size in one look: folders have hundreds of files
  if (::stat(entry.path().c_str(), &status) != 0) {
    // A link to nothing, or to itself; all else is there and may not be looked at, or went just now.
    const int reason = errno;
    if (is_link && (reason == ENOENT || reason == ENOTDIR || reason == ELOOP))
      listing.dangling.push_back(relative);
    else if (reason != ENOENT)
      listing.unreadable.push_back({relative, std::strerror(reason), false});
    return;
  }
  if (!S_ISREG(status.st_mode)) return note_no_file(relative, status.st_mode, listing);
  if (is_link) {
    const fs::path target = fs::canonical(entry.path(), error);
    if (!error && !starts_below(target, allowed)) listing.outside.push_back(relative);
  }
  listing.files.push_back({relative, Bytes(static_cast<std::int64_t>(status.st_size)), role_of(relative)});
}

// Why a folder's names cannot be read; nothing when they can.
std::optional<std::string> fault_of(const fs::path& folder) {
  std::error_code error;
  const fs::directory_iterator first(folder, error);
  return error ? std::optional(error.message()) : std::nullopt;
}

std::string first_line(const std::string& path) {
  const auto text = read_file(path, 1024);
  if (!text) return {};
  return text->substr(0, text->find_first_of(" \r\n"));
}

// Names line and column of a syntax error, which the parser does not.
Error with_place(Error error, const std::string& path, const std::string& text) {
  if (const auto place = json_fault(text)) {
    error.where = fmt::format("{}: byte {}", path, place->offset);
    error.message += fmt::format(" (line {}, column {})", place->line, place->column);
  }
  return error;
}

void collect_duplicates(const Json& value, const std::string& pointer, int depth,
                        std::vector<std::string>& found) {
  if (depth > 32 || found.size() >= kMaxDuplicates) return;
  std::unordered_set<std::string_view> seen;
  for (const auto& [key, child] : value.members()) {
    const std::string place = pointer + "/" + key;
    if (!seen.insert(key).second && found.size() < kMaxDuplicates &&
        std::find(found.begin(), found.end(), place) == found.end())
      found.push_back(place);
    collect_duplicates(child, place, depth + 1, found);
  }
  for (std::size_t i = 0; i < value.items().size(); ++i)
    if (value.items()[i].is_object() || value.items()[i].is_array())
      collect_duplicates(value.items()[i], pointer + "/" + std::to_string(i), depth + 1, found);
}

}  // namespace

bool is_inside(std::string_view path) {
  if (path.empty() || path.front() == '/' || path.find('\0') != std::string_view::npos ||
      path.find('\\') != std::string_view::npos)
    return false;
  for (std::size_t at = 0; at <= path.size();) {
    const std::size_t end = std::min(path.find('/', at), path.size());
    if (path.substr(at, end - at) == "..") return false;
    at = end + 1;
  }
  return true;
}

FolderListing list_folder(const std::string& folder) {
  FolderListing listing;
  const fs::path allowed = allowed_root(folder);
  std::error_code error;
  if (auto reason = fault_of(folder)) {
    listing.unreadable.push_back({"", std::move(*reason), true});
    return listing;
  }
  // Folder links are not followed, so a link to a parent cannot make the walk endless.
  fs::recursive_directory_iterator walk(folder, fs::directory_options::skip_permission_denied, error);
  for (int seen = 0; !error && walk != fs::recursive_directory_iterator() && seen < kLookedAt;
       walk.increment(error), ++seen) {
    const fs::path& path = walk->path();
    // The walk puts its own names behind the folder's.
    std::string relative = path.native().substr(folder.size());
    if (relative.starts_with('/')) relative.erase(0, 1);
    const bool is_listed = (seen < kListedWhole || matters(relative)) && listing.files.size() < kMaxFiles;
    std::error_code ignored;
    if (walk->is_directory(ignored) && !walk->is_symlink(ignored)) {
      const std::string name = path.filename().string();
      if (name.starts_with('.') || walk.depth() + 1 >= kMaxDepth) {
        walk.disable_recursion_pending();
      } else if (auto reason = fault_of(path)) {
        listing.unreadable.push_back({relative, std::move(*reason), true});
        walk.disable_recursion_pending();
      }
      note_no_file(relative, S_IFDIR, listing);
      continue;
    }
    if (is_listed)
      list_entry(*walk, relative, allowed, listing);
    else
      ++listing.num_left_out;
  }
  std::sort(listing.files.begin(), listing.files.end(),
            [](const File& a, const File& b) { return a.path < b.path; });
  std::sort(listing.dangling.begin(), listing.dangling.end());
  std::sort(listing.outside.begin(), listing.outside.end());
  return listing;
}

HubPlace resolve_hub_cache(const std::string& folder) {
  std::error_code error;
  fs::path path = fs::path(folder).lexically_normal();
  if (path.filename().empty()) path = path.parent_path();
  const fs::path snapshots = path / "snapshots";
  if (fs::is_directory(snapshots, error) && !fs::exists(path / "config.json", error)) {
    std::string commit = first_line((path / "refs" / "main").string());
    if (commit.empty() || !is_inside(commit) || !fs::is_directory(snapshots / commit, error)) {
      std::vector<std::string> names;
      for (fs::directory_iterator walk(snapshots, error); !error && walk != fs::directory_iterator();
           walk.increment(error))
        names.push_back(walk->path().filename().string());
      if (names.size() != 1) return {folder, {}};
      commit = names.front();
    }
    return {(snapshots / commit).string(), commit};
  }
  const fs::path absolute = fs::absolute(path, error).lexically_normal();
  if (absolute.parent_path().filename() == "snapshots") return {folder, absolute.filename().string()};
  return {folder, {}};
}

Result<JsonFile> read_json_with_bom(const std::string& path, std::int64_t max_bytes,
                                    std::int64_t max_values) {
  PLIMSOLL_TRY(std::string text, read_file(path, max_bytes));
  JsonFile file;
  file.has_bom = text.starts_with(kByteOrderMark);
  if (file.has_bom) text.erase(0, kByteOrderMark.size());
  auto value = parse_json(text, path, {.max_values = max_values});
  if (!value) return fail(with_place(std::move(value).error(), path, text));
  file.value = std::move(*value);
  return file;
}

std::vector<std::string> duplicate_keys(const Json& value) {
  std::vector<std::string> found;
  collect_duplicates(value, "", 0, found);
  return found;
}

}  // namespace plimsoll::artifact
