// SPDX-License-Identifier: Apache-2.0
// The command line: which verb, which flags, which exit status. One file per verb (verb_<name>.cpp), no logic
// of its own.
#pragma once

namespace plimsoll::cli {

/// Parses the command line and runs one verb. Returns the process's exit status:
/// 0 done, 1 the answer is no, 2 usage, 3 malformed, 4 unsupported, 5 network, 70 our own bug.
int run(int argc, char** argv);

}  // namespace plimsoll::cli
