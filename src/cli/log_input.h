// SPDX-License-Identifier: Apache-2.0
// Where does an engine's log come from? A file, a pipe or stdin, read to its end or for as long as it grows.
// One thread.
#pragma once

#include <string>

#include "base/result.h"
#include "verify/log_reader.h"

namespace plimsoll::cli {

/// Feeds all of `path` ("-": stdin) to a reader. Errors: kMalformed for what cannot be read.
Result<verify::Log> read_log(const std::string& path);

/// The same of a log that still grows: until its last start has settled (it serves or has refused), the pipe
/// is closed, or SIGINT or SIGTERM comes. A file that gets shorter is read from its beginning.
Result<verify::Log> follow_log(const std::string& path);

}  // namespace plimsoll::cli
