// SPDX-License-Identifier: Apache-2.0
// Asks a hub: JSON of its API, metadata of a file, and bytes of a file. Follows redirects itself, sends the
// token to the hub's hosts only, waits and tries again where that helps, within bounds. What the answers mean
// is for listing.h and download.h. A client belongs to one thread.
#pragma once

#include <cstdint>
#include <string>

#include "artifact/hub/refusal.h"
#include "artifact/hub/settings.h"
#include "artifact/hub/transport.h"
#include "base/json.h"
#include "base/result.h"

namespace plimsoll::artifact {

struct HubJson {
  Json value;
  std::string next;  // address of the next page (Link rel=next); empty on the last
};

/// What a HEAD of a file says.
struct FileHead {
  std::string commit;
  std::string etag;  // git blob sha1 (40 digits) or sha256 (64 digits)
  std::optional<std::int64_t> size;
  Url location;  // where its bytes are; may be another host
};

class HubClient {
 public:
  explicit HubClient(HubSettings settings);

  /// GET of a JSON answer. `path` begins with a slash, or is an absolute address of the hub (a next page).
  /// `kind`, when given, receives what kind of refusal an error was.
  /// Errors: kNetwork for all that keeps the answer away, and for what is no JSON.
  Result<HubJson> json(const std::string& path, const Asked& asked, Refusal* kind = nullptr);

  /// HEAD of asked.file at asked.revision.
  /// Errors: kNetwork; an answer without commit or etag is none of a hub.
  Result<FileHead> head(const Asked& asked, Refusal* kind = nullptr);

  /// Bytes from `first` on, up to and with `last` (-1: to the end), from where `head` said.
  /// `take` gets the place in the file of each piece; when the server ignores the range, pieces come from 0
  /// on all the same and `take` must expect it. False from `take` ends the exchange without an error. Tries
  /// once: the answer says how it went.
  using Take = std::function<bool(std::int64_t at, std::string_view piece)>;
  /// `size`, when known, is the whole file's: a 206 of another file is a fault.
  HttpAnswer bytes(const Url& location, std::int64_t first, std::int64_t last,
                   std::optional<std::int64_t> size, const Take& take);

  /// A short range in memory, with retries.
  /// Errors: kNetwork, also when the answer is another range or shorter.
  Result<std::string> range(const FileHead& head, std::int64_t first, std::int64_t last, const Asked& asked);

  const HubSettings& settings() const { return settings_; }

 private:
  HttpAnswer follow(HttpRequest request, bool stops_at_foreign, Url& at, const Receiver& receiver = {});

  HubSettings settings_;
  Url endpoint_;
  bool has_endpoint_ = false;
  Transport transport_;
};

/// Bounded patience: how often and how long one request is tried again.
class Patience {
 public:
  explicit Patience(const HubSettings& settings);
  /// Waits and returns true when another try makes sense after this answer.
  bool waits_after(const HttpAnswer& answer);
  /// Something arrived: faults before it no longer count.
  void note_progress() {
    tries_ = 0;
    left_ = whole_;
  }

 private:
  const std::chrono::milliseconds whole_, pause_;
  std::chrono::milliseconds left_;
  int tries_ = 0;
};

}  // namespace plimsoll::artifact
