// SPDX-License-Identifier: Apache-2.0
// What all verbs share: the output flags, printing a document or an error once, and the table from error to
// exit status.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/json.h"
#include "base/result.h"

namespace CLI {
class App;
}

namespace plimsoll::cli {

enum class Format { kText, kJson, kHtml, kCsv };

/// Flags that every verb has: --format, -o, -q, -v, --lock.
struct CommonFlags {
  std::string format = "text";
  std::string output;  // -o FILE; empty: stdout
  std::string lock;    // --lock FILE: the record that MODEL is held against
  bool quiet = false;
  bool verbose = false;
  bool is_json() const { return format == "json"; }
};
void add_common_flags(CLI::App& verb, CommonFlags& flags);

/// The one table from error code to exit status.
int exit_status(ErrorCode code);

/// Writes to stdout and sees that it arrives. Errors: kUsage when stdout takes no more: a full disk, a closed
/// pipe.
Status write_stdout(std::string_view text);
/// Writes to stdout or the -o file. Errors: kUsage when it cannot be written.
Status write_output(const CommonFlags& flags, std::string_view text);

/// Prints an error once: one to three lines on stderr, and with --format json the plimsoll.error/1 document
/// on stdout. Returns the exit status.
int report_error(const CommonFlags& flags, const Error& error);

/// A verb registers its subcommand and flags on `app` and returns what runs it; the result is the exit
/// status. `common` is filled by the parser; -q and -v are applied before `run`, for all verbs in one place.
using Runner = std::function<int()>;
struct Verb {
  CLI::App* command = nullptr;
  std::shared_ptr<const CommonFlags> common;
  Runner run;
};
/// The verb whose flags, with the CommonFlags `common` among them, live as long as it does.
template <class Flags>
Verb make_verb(CLI::App* command, const std::shared_ptr<Flags>& flags, int (*run)(Flags&)) {
  return {command, {flags, &flags->common}, [flags, run] { return run(*flags); }};
}
Verb add_inspect(CLI::App& app);
Verb add_plan(CLI::App& app);
Verb add_pull(CLI::App& app);
Verb add_tokens(CLI::App& app);
Verb add_generate(CLI::App& app);
Verb add_eval(CLI::App& app);
Verb add_serve(CLI::App& app);
Verb add_bench(CLI::App& app);
Verb add_verify(CLI::App& app);
Verb add_demo(CLI::App& app);
Verb add_top(CLI::App& app);

}  // namespace plimsoll::cli
