// SPDX-License-Identifier: Apache-2.0
#include "artifact/hub/download.h"

#include <fmt/format.h>

#include <atomic>
#include <filesystem>
#include <mutex>
#include <system_error>

#include "artifact/hub/part_file.h"
#include "base/hash.h"
#include "base/thread_pool.h"

namespace plimsoll::artifact {
namespace {

namespace fs = std::filesystem;

// Bytes of all files together, told to one listener.
class Meter {
 public:
  Meter(const Progress& listener, std::int64_t total) : listener_(listener), total_(total) {}
  void add(std::int64_t bytes, std::string_view file = {}) {
    if (!listener_) return;
    const std::lock_guard lock(mutex_);
    done_ += bytes;
    listener_(done_, total_, file);
  }

 private:
  const Progress& listener_;
  const std::int64_t total_;
  std::mutex mutex_;
  std::int64_t done_ = 0;
};

Result<std::string> digest_of(const HubFile& file, const std::string& path) {
  if (!file.sha256.empty()) return digest_of_file(path, DigestKind::kSha256);
  return git_digest_of_file(path, file.bytes);
}

bool is_sound(const HubFile& file, const std::string& path, bool checks_large) {
  std::error_code error;
  if (path.empty() || fs::file_size(path, error) != static_cast<std::uintmax_t>(file.bytes) || error)
    return false;
  if (!file.sha256.empty() && !checks_large) return true;
  const auto digest = digest_of(file, path);
  return digest && *digest == file.etag();
}

class FileFetcher {
 public:
  FileFetcher(const HubCache& cache, const Fetch& fetch, Meter& meter, Disagreement& disagrees,
              const HubFile& file, HubClient& client)
      : cache_(cache),
        file_(file),
        client_(client),
        meter_(meter),
        disagrees_(disagrees),
        checks_large_(fetch.checks_large),
        asked_{fetch.repo, fetch.commit, file.path} {}

  Status run() {
    if (is_sound(file_, cache_.file(asked_.revision, file_.path), checks_large_)) {
      meter_.add(file_.bytes, file_.path);
      return {};
    }
    PLIMSOLL_TRY_VOID(cache_.prepare(asked_.revision, file_.path));
    // Without links a blob moves to the first file of its content; another one that had seen it, or had just
    // fetched it too, finds it gone and fetches it again.
    constexpr int kTries = 8;  // as many workers may have files of one content
    for (int tries = 1;; ++tries) {
      const bool has_blob = is_sound(file_, cache_.blob(file_.etag()), checks_large_);
      if (!has_blob) PLIMSOLL_TRY_VOID(download());
      const Status shown = cache_.show(asked_.revision, file_.path, file_.etag(), !has_blob);
      if (shown && has_blob) meter_.add(file_.bytes);
      if (shown) break;
      std::error_code error;
      if (tries == kTries || fs::exists(cache_.blob(file_.etag()), error)) return shown;
    }
    meter_.add(0, file_.path);
    return {};
  }

 private:
  Error damaged(std::string what) const {
    return Error{ErrorCode::kNetwork, "downloading: " + std::move(what), asked_.place(),
                 "try again; if it stays so, a proxy or mirror in between changes files"};
  }

  Status download() {
    Refusal kind = Refusal::kOther;
    auto asked_head = head_of_listed(client_, file_, asked_, disagrees_, &kind);
    if (!asked_head && kind == Refusal::kNoEntry) cache_.note_absent(asked_.revision, asked_.file);
    PLIMSOLL_TRY(const FileHead head, std::move(asked_head));
    if (head.etag != file_.etag() || head.commit != asked_.revision) {
      disagrees_ = true;
      return fail(damaged(fmt::format("the hub's list names digest {} in commit {}, its answer {} in {}",
                                      file_.etag(), asked_.revision, head.etag, head.commit)));
    }
    PLIMSOLL_TRY(PartFile part,
                 PartFile::open(cache_.blob(file_.etag()), cache_.lock_path(file_.etag()), file_.bytes));
    meter_.add(part.size());
    // A part that an earlier run left may be damaged: then once more from the start.
    bool is_resumed = part.size() > 0;
    while (true) {
      PLIMSOLL_TRY_VOID(receive(head, part));
      PLIMSOLL_TRY(const std::string digest, digest_of(file_, part.path()));
      if (digest == file_.etag()) break;
      meter_.add(-part.size());
      PLIMSOLL_TRY_VOID(part.restart());
      if (!is_resumed) {
        part.discard();
        return fail(damaged(fmt::format("the content has digest {}, expected {}", digest, file_.etag())));
      }
      is_resumed = false;
    }
    return part.finish(cache_.blob(file_.etag()));
  }

  // Until the part has all its bytes.
  Status receive(FileHead head, PartFile& part) {
    Patience patience(client_.settings());
    bool may_restart = true, may_ask_again = true;
    while (part.size() < file_.bytes) {
      const std::int64_t first = part.size();
      Status written;
      bool is_too_long = false;
      HttpAnswer answer =
          client_.bytes(head.location, first, -1, file_.bytes, [&](std::int64_t at, std::string_view piece) {
            if (at != part.size()) {  // the server begins at 0 whatever was asked
              meter_.add(-part.size());
              written = part.restart();
            }
            is_too_long = part.size() + static_cast<std::int64_t>(piece.size()) > file_.bytes;
            if (written && !is_too_long) written = part.append(piece);
            meter_.add(static_cast<std::int64_t>(piece.size()));
            return written.has_value() && !is_too_long;
          });
      PLIMSOLL_TRY_VOID(std::move(written));
      if (is_too_long) {
        part.discard();
        if (!head.size) disagrees_ = true;  // only the listing has named a size
        return fail(damaged(fmt::format("more than the {} bytes that were named arrive", file_.bytes)));
      }
      if (part.size() == file_.bytes) break;
      const bool is_other_range =
          answer.status == 416 || (answer.status == 206 && answer.fault == Fault::kOther);
      if (is_other_range && first > 0 && may_restart) {
        may_restart = false;
        meter_.add(-part.size());
        PLIMSOLL_TRY_VOID(part.restart());
        continue;
      }
      if (part.size() > first) patience.note_progress();
      if (answer.status == 403 && may_ask_again) {  // a signed address lives for minutes
        may_ask_again = part.size() > first;
        PLIMSOLL_TRY(head, client_.head(asked_));
        continue;
      }
      if (answer.is_success()) {
        answer.fault = Fault::kCut;
        answer.reason = "the answer is shorter than the file";
      }
      if (patience.waits_after(answer)) continue;
      Error error = refusal_error(answer, asked_, head.location, client_.settings());
      error.message += fmt::format("; {} of {} bytes are here", part.size(), file_.bytes);
      return fail(std::move(error));
    }
    return {};
  }

  const HubCache& cache_;
  const HubFile& file_;
  HubClient& client_;
  Meter& meter_;
  Disagreement& disagrees_;
  const bool checks_large_;
  const Asked asked_;
};

}  // namespace

Status for_each_with_client(const HubSettings& settings, std::size_t count,
                            const std::function<Status(std::size_t, HubClient&)>& work) {
  const int threads = static_cast<int>(std::min<std::size_t>(count, kHubConnections));
  if (threads == 0) return {};
  std::vector<std::unique_ptr<HubClient>> clients(static_cast<std::size_t>(threads));
  std::mutex mutex;
  std::optional<Error> first_error;
  std::atomic<bool> has_failed = false;
  ThreadPool pool(threads);
  pool.run(static_cast<std::int64_t>(count), [&](std::int64_t index, int thread) {
    if (has_failed) return;
    auto& client = clients[static_cast<std::size_t>(thread)];
    if (!client) client = std::make_unique<HubClient>(settings);
    Status done = work(static_cast<std::size_t>(index), *client);
    if (done) return;
    has_failed = true;
    const std::lock_guard lock(mutex);
    if (!first_error) first_error = std::move(done).error();
  });
  if (first_error) return fail(std::move(*first_error));
  return {};
}

bool is_held(const HubCache& cache, const Fetch& fetch, const HubFile& file) {
  return is_sound(file, cache.file(fetch.commit, file.path), fetch.checks_large);
}

Status fetch_files(const HubSettings& settings, const HubCache& cache, const Fetch& fetch,
                   Disagreement& disagrees) {
  std::int64_t total = 0;
  for (const HubFile& file : fetch.files) total += file.bytes;
  Meter meter(fetch.progress, total);
  return for_each_with_client(settings, fetch.files.size(), [&](std::size_t index, HubClient& client) {
    return FileFetcher(cache, fetch, meter, disagrees, fetch.files[index], client).run();
  });
}

}  // namespace plimsoll::artifact
