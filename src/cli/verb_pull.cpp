// SPDX-License-Identifier: Apache-2.0
// `pull`: MODEL -> artifact room -> the commit, and the lock record.
#include <CLI/CLI.hpp>
#include <chrono>
#include <memory>

#include "artifact/hub/pull.h"
#include "base/log.h"
#include "base/mapped_file.h"
#include "base/printable.h"
#include "cli/model_argument.h"
#include "cli/verbs.h"
#include "inspect/inspect.h"

namespace plimsoll::cli {
namespace {

struct PullFlags {
  CommonFlags common;
  artifact::PullOptions options;
  std::string engine, image_digest;
};

// A line at every file's end, and otherwise not more than one in two seconds.
artifact::Progress progress_lines() {
  auto last = std::make_shared<std::chrono::steady_clock::time_point>(std::chrono::steady_clock::now());
  return [last](std::int64_t done, std::int64_t total, std::string_view file) {
    const auto now = std::chrono::steady_clock::now();
    if (file.empty() && now - *last < std::chrono::seconds(2)) return;
    *last = now;
    log_info(as_gb(Bytes(done)) + " of " + as_gb(Bytes(total)) +
             (file.empty() ? std::string() : ", " + std::string(file)));
  };
}

// The length an engine takes by default; nothing when only a part was pulled.
std::optional<std::int64_t> model_length(const std::string& folder) {
  const auto report = inspect::inspect(folder, {});
  return report ? report->context.max_model_len : std::nullopt;
}

Json document(const artifact::Pulled& pulled, const std::string& lock) {
  const artifact::LockRecord& record = pulled.record;
  return Json::object({{"schema", "plimsoll.pull/1"},
                       {"repo", record.repo},
                       {"revision", record.revision},
                       {"commit", record.commit},
                       {"folder", pulled.folder},
                       {"bytes", pulled.bytes.value},
                       {"files", artifact::to_json(record)["files"]},
                       {"lock", lock.empty() ? Json() : Json(lock)},
                       {"findings", to_json(pulled.findings)}});
}

int run_pull(PullFlags& flags) {
  if (const Status settled = settle_model(flags.options.model, flags.common); !settled)
    return report_error(flags.common, settled.error());
  if (!flags.common.lock.empty())
    return report_error(flags.common, {ErrorCode::kUsage, "pull takes a model or a lock record, not both",
                                       "--lock", "-o FILE writes a record; `pull FILE` pulls what it pins"});
  if (!flags.common.quiet) flags.options.progress = progress_lines();
  flags.options.checks_all = !flags.common.output.empty();  // a record states what was seen
  auto pulled = artifact::pull(flags.options);
  if (!pulled) return report_error(flags.common, pulled.error());
  for (const Finding& finding : pulled->findings)
    log_warning(finding.id + ": " + finding.where + ": " + finding.message);
  artifact::LockRecord& record = pulled->record;
  const std::size_t at = flags.engine.find('@');
  record.engine_name = flags.engine.substr(0, at);
  if (at != std::string::npos) record.engine_version = flags.engine.substr(at + 1);
  record.engine_image_digest = flags.image_digest;
  record.max_model_len = model_length(pulled->folder);
  const std::string& lock = flags.common.output;
  if (!lock.empty())
    if (const Status written = write_file(lock, dump_pretty(artifact::to_json(record))); !written)
      return report_error(flags.common, written.error());
  const Status shown = write_stdout(flags.common.is_json() ? dump_pretty(document(*pulled, lock))
                                                           : printable(record.commit) + "\n");
  if (!shown) return report_error(flags.common, shown.error());
  return worst_level(pulled->findings) == FindingLevel::kError ? exit_status(ErrorCode::kNo) : 0;
}

}  // namespace

Verb add_pull(CLI::App& app) {
  auto flags = std::make_shared<PullFlags>();
  CLI::App* verb =
      app.add_subcommand("pull", "bring a hub's model into the shared cache, verified; prints its commit");
  verb->add_option("MODEL", flags->options.model, "org/name[@revision], or a lock record");
  verb->add_option("--include", flags->options.include,
                   "only files like this ('*.safetensors'); may be given again")
      ->allow_extra_args(false);
  verb->add_option("--engine", flags->engine, "NAME[@VERSION] for the lock record");
  verb->add_option("--image-digest", flags->image_digest, "digest of the engine's image for the lock record");
  add_common_flags(*verb, flags->common);
  verb->get_option("-o")->description("write a lock record to this file: commit, sizes and digests");
  verb->footer(
      "Examples:\n"
      "  plimsoll pull Qwen/Qwen3-0.6B\n"
      "  plimsoll pull Qwen/Qwen3-0.6B --include '*.json' --include 'tokenizer*'\n"
      "  plimsoll pull Qwen/Qwen3-0.6B -o qwen.lock --engine vllm@0.33.0\n"
      "  plimsoll pull qwen.lock\n"
      "A pull that was interrupted goes on where it stopped. HF_ENDPOINT, HF_TOKEN, HF_HOME, HF_HUB_CACHE "
      "and\n"
      "HF_HUB_OFFLINE are read as huggingface_hub reads them, and the cache is shared with it.");
  return make_verb(verb, flags, run_pull);
}

}  // namespace plimsoll::cli
