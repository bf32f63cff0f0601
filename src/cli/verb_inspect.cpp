// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <vector>

#include "base/units.h"
#include "cli/model_argument.h"
#include "cli/verbs.h"
#include "inspect/compare.h"
#include "inspect/inspect.h"
#include "memory/memory.h"

namespace plimsoll::cli {
namespace {

struct Flags {
  CommonFlags common;
  std::string model;
  inspect::Options options;
  std::string max_model_len;
  std::string workload;
  std::vector<std::string> compare;  // --compare: MODEL's other, or both
};

// Two models side by side: 0 when nothing differs, 1 when something does.
int run_compare(const Flags& flags) {
  inspect::Options options = flags.options;
  options.lists_tensors = true;
  const auto one = inspect::inspect(flags.model, options);
  if (!one) return report_error(flags.common, one.error());
  const auto other = inspect::inspect(flags.compare.back(), options);
  if (!other) return report_error(flags.common, other.error());
  Json comparison = inspect::compare(*one, *other);
  const bool is_same = comparison["same"].as_bool().value_or(false);
  const std::string text = inspect::compare_text(comparison);
  const Json document = Json::object({{"schema", "plimsoll.inspect/1"}, {"compare", std::move(comparison)}});
  const Status written = write_output(flags.common, flags.common.is_json() ? dump_pretty(document) : text);
  if (!written) return report_error(flags.common, written.error());
  return is_same ? 0 : exit_status(ErrorCode::kNo);
}

int run_inspect(Flags& flags) {
  if (flags.compare.size() == 2) {
    if (!flags.model.empty())
      return report_error(flags.common,
                          Error{ErrorCode::kUsage, "three models are given, two can be compared", "--compare",
                                "give MODEL --compare OTHER or --compare A B"});
    flags.model = flags.compare.front();
  }
  if (const Status settled = settle_model(flags.model, flags.common); !settled)
    return report_error(flags.common, settled.error());
  flags.options.lock = flags.common.lock;
  if (!flags.max_model_len.empty()) {
    flags.options.sequence_tokens = parse_size(flags.max_model_len);
    if (!flags.options.sequence_tokens || *flags.options.sequence_tokens < 1)
      return report_error(flags.common,
                          Error{ErrorCode::kUsage, "\"" + flags.max_model_len + "\" is no length in tokens",
                                "--max-model-len", "give a number, 32k (32,000) or 32K (32,768)"});
  }
  if (!flags.workload.empty()) {
    const auto workload = memory::parse_workload(flags.workload);
    if (!workload) return report_error(flags.common, workload.error());
    flags.options.workload = *workload;
  }
  if (!flags.compare.empty()) return run_compare(flags);
  const auto report = inspect::inspect(flags.model, flags.options);
  if (!report) return report_error(flags.common, report.error());
  const Status written =
      write_output(flags.common, flags.common.is_json() ? dump_pretty(inspect::to_json(*report))
                                                        : inspect::to_text(*report));
  if (!written) return report_error(flags.common, written.error());
  const auto code = inspect::verdict_code(report->findings);
  return code ? exit_status(*code) : 0;
}

}  // namespace

Verb add_inspect(CLI::App& app) {
  auto flags = std::make_shared<Flags>();
  CLI::App* verb =
      app.add_subcommand("inspect", "sizes, structure and every fault of a model, before it is deployed");
  verb->add_option("MODEL", flags->model, kModelHelp);
  verb->add_flag("--deep", flags->options.is_deep, "read every tensor: NaN and infinity counts");
  verb->add_flag("--tensors", flags->options.lists_tensors, "list all tensors");
  verb->add_option("--tensor", flags->options.tensor, "statistics of one tensor");
  verb->add_option("--compare", flags->compare,
                   "another MODEL, or two: what differs between them; exit 1 if anything does")
      ->expected(1, 2);
  verb->add_option("--max-model-len", flags->max_model_len,
                   "tokens of the sequence that KV bytes are given for");
  verb->add_option("--kv-cache-dtype", flags->options.kv_cache_dtype,
                   "auto, bfloat16, float16, fp8, q8_0, ...")
      ->capture_default_str();
  verb->add_option("--workload", flags->workload,
                   "the traffic that is meant: isl=N,osl=N,concurrency=C[,rate=R]");
  verb->add_option("--gpu", flags->options.gpu,
                   "NAME[:N] or 24GB[:N]: check these GPUs against the model's needs");
  verb->add_flag("--here", flags->options.is_here, "check this machine against the model's needs");
  add_common_flags(*verb, flags->common);
  verb->footer(
      std::string(
          "Examples:\n"
          "  plimsoll inspect ./SmolLM2-135M-Instruct\n"
          "  plimsoll inspect Qwen/Qwen3-0.6B --gpu H100:2 --workload isl=2000,osl=500,concurrency=8\n"
          "  plimsoll inspect Qwen/Qwen3-0.6B --here\n"
          "  plimsoll inspect ./model --lock qwen.lock\n"
          "  plimsoll inspect model.gguf --format json\n"
          "  plimsoll inspect ./model --deep\n"
          "  plimsoll inspect --compare ./model ./model-AWQ\n"
          "  plimsoll inspect config.json --max-model-len 32K --kv-cache-dtype fp8") +
      kModelEnvironment);
  return make_verb(verb, flags, run_inspect);
}

}  // namespace plimsoll::cli
