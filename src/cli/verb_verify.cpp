// SPDX-License-Identifier: Apache-2.0
// `verify`: log, plan and measurements -> verify room -> print.
#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>

#include "artifact/lock.h"
#include "base/printable.h"
#include "cli/log_input.h"
#include "cli/verbs.h"
#include "verify/verify.h"

namespace plimsoll::cli {
namespace {

struct VerifyFlags {
  CommonFlags common;
  std::string log, plan, bench;
  bool follows = false;
};

Result<std::optional<Json>> read_document(const std::string& path) {
  if (path.empty()) return std::optional<Json>();
  PLIMSOLL_TRY(Json document, read_json_file(path));
  return std::optional<Json>(std::move(document));
}

Result<verify::Report> report_of(const VerifyFlags& flags) {
  PLIMSOLL_TRY(const auto plan, read_document(flags.plan));
  PLIMSOLL_TRY(const auto bench, read_document(flags.bench));
  PLIMSOLL_TRY(verify::Log log, flags.follows ? follow_log(flags.log) : read_log(flags.log));
  return verify::compare(std::move(log), plan ? &*plan : nullptr, bench ? &*bench : nullptr);
}

// What a log and a lock record both say has to be the same: engine and version.
Result<std::optional<std::string>> other_engine(const std::string& lock, const verify::Log& log) {
  std::optional<std::string> difference;
  if (lock.empty() || log.runs.empty()) return difference;
  PLIMSOLL_TRY(const artifact::LockRecord record, artifact::read_lock_file(lock));
  const verify::EngineStart& start = log.runs.back();
  const auto differs = [](const std::string& locked, const std::optional<std::string>& logged) {
    return !locked.empty() && logged && *logged != locked;
  };
  if (differs(record.engine_name, start.engine) || differs(record.engine_version, start.version))
    difference = "LOCK_MISMATCH: the lock record pins " + record.engine_name + " " + record.engine_version +
                 ", the log is of " + start.engine.value_or("an unknown engine") + " " +
                 start.version.value_or("of unknown version");
  return difference;
}

int run_verify(VerifyFlags& flags) {
  const auto report = report_of(flags);
  if (!report) return report_error(flags.common, report.error());
  const std::string text =
      flags.common.is_json() ? dump_pretty(verify::to_json(*report)) : verify::to_text(*report);
  if (const auto written = write_output(flags.common, text); !written)
    return report_error(flags.common, written.error());
  if (!report->is_recognised()) {
    std::cerr << "plimsoll: no start-up line of a known engine was found in the log (" << printable(flags.log)
              << ")\n";
    return exit_status(ErrorCode::kMalformed);
  }
  const auto other = other_engine(flags.common.lock, report->log);
  if (!other) return report_error(flags.common, other.error());
  if (*other) {
    std::cerr << "plimsoll: " << printable(**other) << " (" << printable(flags.common.lock) << ")\n";
    return exit_status(ErrorCode::kNo);
  }
  return report->agrees() ? 0 : exit_status(ErrorCode::kNo);
}

}  // namespace

Verb add_verify(CLI::App& app) {
  auto flags = std::make_shared<VerifyFlags>();
  CLI::App* verb = app.add_subcommand("verify", "does the engine's start-up log agree with the plan?");
  add_common_flags(*verb, flags->common);
  verb->add_option("LOG", flags->log, "the engine's log; - reads stdin")->required();
  verb->add_option("--plan", flags->plan, "a document of `plimsoll plan --format json`");
  verb->add_option("--bench", flags->bench, "a result of `plimsoll bench`, for the measured column");
  verb->add_flag("--follow", flags->follows,
                 "read a log that grows, until the engine serves or has refused to start");
  verb->footer(
      "Examples:\n"
      "  plimsoll verify serve.log --plan plan.json\n"
      "  plimsoll verify serve.log --plan plan.json --bench result.json --format json\n"
      "  plimsoll serve ./my-model 2>&1 | head -20 | plimsoll verify -\n"
      "  vllm serve my-model > serve.log 2>&1 & plimsoll verify --follow serve.log --plan plan.json\n"
      "Exit status: 0 read, and it agrees with the plan if one was given; 1 it disagrees, or the start "
      "failed;\n"
      "3 nothing recognised.");
  return make_verb(verb, flags, run_verify);
}

}  // namespace plimsoll::cli
