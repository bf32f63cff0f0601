// SPDX-License-Identifier: Apache-2.0
#include "artifact/hub_cache.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "artifact/hub/part_file.h"
#include "base/log.h"
#include "base/mapped_file.h"
#include "base/units.h"

namespace plimsoll::artifact {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kMaxTreeBytes = 64 * kMiB;
// The signature that the Cache Directory Tagging Specification asks for.
constexpr std::string_view kCacheTag = "Signature: 8a477f597d28d172789f06886806bc55\n";

std::string folder_name(const std::string& repo) {
  std::string name = "models--";
  for (const char c : repo) name += c == '/' ? "--" : std::string(1, c);
  return name;
}

Status make_folder(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error)
    return fail(ErrorCode::kUsage, "the cache cannot be written: " + error.message(), folder.string(),
                "make it writable, or name another with HF_HUB_CACHE");
  return {};
}

// Only over a plain file, or where there is nothing: a pipe would wait for a reader, a device take the text.
bool keep(const fs::path& path, std::string_view content) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  return (!fs::exists(status) || fs::is_regular_file(status)) && write_file(path.string(), content);
}

}  // namespace

HubCache::HubCache(std::string root, std::string repo, bool uses_links)
    : root_(std::move(root)), name_(folder_name(repo)), uses_links_(uses_links) {
  folder_ = root_ + "/" + name_;
}

std::string HubCache::snapshot(std::string_view commit) const {
  return folder_ + "/snapshots/" + std::string(commit);
}

std::string HubCache::file(std::string_view commit, std::string_view path) const {
  if (!is_commit(commit) || !is_safe_name(path)) return {};
  const std::string place = snapshot(commit) + "/" + std::string(path);
  std::error_code error;
  return fs::is_regular_file(place, error) ? place : std::string();  // through links, also double ones
}

std::string HubCache::blob(std::string_view etag) const {
  return folder_ + "/blobs/" + std::string(etag);
}

std::string HubCache::lock_path(std::string_view etag) const {
  return root_ + "/.locks/" + name_ + "/" + std::string(etag) + ".lock";
}

std::string HubCache::commit_of(std::string_view revision) const {
  if (is_commit(revision)) return std::string(revision);
  if (!is_safe_name(revision)) return {};
  const auto text = read_file(folder_ + "/refs/" + std::string(revision), 1024);
  if (!text) return {};
  const std::string commit = text->substr(0, text->find_first_of(" \r\n"));
  return is_commit(commit) ? commit : std::string();
}

void HubCache::set_ref(std::string_view revision, std::string_view commit) const {
  if (is_commit(revision) || !is_safe_name(revision) || commit_of(revision) == commit) return;
  const fs::path path = folder_ + "/refs/" + std::string(revision);
  if (!make_folder(path.parent_path())) return;
  if (!keep(path, commit)) log_debug("refs of the hub cache cannot be written");
}

std::optional<std::vector<HubFile>> HubCache::tree(std::string_view commit) const {
  if (!is_commit(commit)) return std::nullopt;
  const auto text = read_json_file(folder_ + "/trees/" + std::string(commit) + ".json", kMaxTreeBytes);
  return text ? read_cached_tree(*text) : std::nullopt;
}

void HubCache::keep_tree(std::string_view commit, const std::vector<HubFile>& files) const {
  const std::string path = folder_ + "/trees/" + std::string(commit) + ".json";
  if (!make_folder(folder_ + "/trees")) return;
  if (!keep(path, dump_pretty(cached_tree(files), 1)))
    log_debug("the listing cannot be kept in the hub cache");
}

bool HubCache::is_known_absent(std::string_view commit, std::string_view path) const {
  if (!is_commit(commit) || !is_safe_name(path)) return false;
  std::error_code error;
  return fs::exists(folder_ + "/.no_exist/" + std::string(commit) + "/" + std::string(path), error);
}

void HubCache::note_absent(std::string_view commit, std::string_view path) const {
  if (!is_commit(commit) || !is_safe_name(path)) return;
  const fs::path place = folder_ + "/.no_exist/" + std::string(commit) + "/" + std::string(path);
  if (make_folder(place.parent_path()) && !keep(place, "")) log_debug("the hub cache cannot be written");
}

Status HubCache::prepare(std::string_view commit, std::string_view path) const {
  const fs::path place = snapshot(commit) + "/" + std::string(path);
  PLIMSOLL_TRY_VOID(make_folder(place.parent_path()));
  PLIMSOLL_TRY_VOID(make_folder(folder_ + "/blobs"));
  std::error_code error;
  const std::string tag = root_ + "/CACHEDIR.TAG";
  if (!fs::exists(tag, error) && !keep(tag, kCacheTag)) log_debug("CACHEDIR.TAG cannot be written");
  return {};
}

Status HubCache::show(std::string_view commit, std::string_view path, std::string_view etag,
                      bool is_new) const {
  const fs::path place = snapshot(commit) + "/" + std::string(path);
  const fs::path source = blob(etag);
  std::error_code error;
  if (uses_links_) {
    if (fs::equivalent(place, source, error)) return {};
    std::string target = "../../";  // out of COMMIT and of snapshots
    for (auto depth = std::count(path.begin(), path.end(), '/'); depth > 0; --depth) target += "../";
    target += "blobs/" + std::string(etag);
    // Under a name of its own first, then renamed: a reader never finds the place empty.
    const fs::path fresh = part_name(source.string());
    fs::create_symlink(target, fresh, error);
    if (!error) fs::rename(fresh, place, error);
    if (!error) return {};
    std::error_code ignored;
    fs::remove(fresh, ignored);
    log_debug("no link could be made in the hub cache: " + error.message());
  }
  error.clear();
  // A blob that was there before may be shown elsewhere too. Copied beside it under a name of its own first:
  // a copy that a full disk or a signal ends is no file of the model.
  const fs::path fresh = part_name(source.string());
  if (!is_new) fs::copy_file(source, fresh, error);
  if (!error) fs::rename(is_new ? source : fresh, place, error);
  std::error_code ignored;
  if (error && !is_new) fs::remove(fresh, ignored);
  if (error)
    return fail(ErrorCode::kUsage, "the file cannot be put into its snapshot: " + error.message(),
                place.string(), "make the cache writable, or name another with HF_HUB_CACHE");
  return {};
}

}  // namespace plimsoll::artifact
