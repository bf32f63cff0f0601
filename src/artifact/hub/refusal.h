// SPDX-License-Identifier: Apache-2.0
// What does it mean that the hub did not give what was asked for, and what can be done? One sentence and one
// advice for each kind of refusal. Pure; no token and no signed address gets into a sentence.
#pragma once

#include <optional>
#include <string>

#include "artifact/hub/settings.h"
#include "artifact/hub/transport.h"
#include "base/result.h"

namespace plimsoll::artifact {

/// What a request was about.
struct Asked {
  std::string repo;      // org/name
  std::string revision;  // branch, tag or commit
  std::string file;      // empty: the repository itself

  /// "org/name@main: config.json"
  std::string place() const;
};

enum class Refusal {
  kGated,
  kNoRepo,  // missing or private
  kNoRevision,
  kNoEntry,
  kBadToken,
  kForbidden,
  kDisabled,
  kRateLimited,
  kServer,   // 5xx
  kNetwork,  // no answer
  kTls,
  kNotAHub,
  kOther,
};

/// `text` with control characters replaced: a server's words and names do not steer a terminal.
std::string printable(std::string text);

/// An answer that is no success, as a kind.
Refusal refusal_of(const HttpAnswer& answer);

/// The error to show for it, always kNetwork: exit status 5.
Error refusal_error(const HttpAnswer& answer, const Asked& asked, const Url& url,
                    const HubSettings& settings);

/// The error for an answer that does not look like a hub's: `what` says how ("it names no commit").
Error not_a_hub(const std::string& what, const Asked& asked, const Url& url);

/// Seconds that the hub asks to wait (RateLimit, Retry-After); nothing when it does not say.
std::optional<std::int64_t> asked_wait_s(const HttpAnswer& answer);

}  // namespace plimsoll::artifact
