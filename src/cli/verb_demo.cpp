// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <memory>

#include "base/home_folder.h"
#include "base/mapped_file.h"
#include "base/printable.h"
#include "cli/model_argument.h"
#include "cli/verbs.h"
#include "loop/demo.h"

namespace plimsoll::cli {
namespace {

struct DemoFlags {
  CommonFlags common;
  loop::DemoOptions options;
};

// Where tools/fetch_model keeps the demo's model.
std::string cached_model() {
  const auto variable = [](const char* name) {
    const char* value = std::getenv(name);
    return std::string(value ? value : "");
  };
  std::string folder = variable("PLIMSOLL_CACHE");
  if (folder.empty() && !variable("XDG_CACHE_HOME").empty())
    folder = variable("XDG_CACHE_HOME") + "/plimsoll";
  if (folder.empty()) folder = home_folder() + "/.cache/plimsoll";
  return folder + "/SmolLM2-135M-Instruct.Q4_1.gguf";
}

int run_demo_verb(DemoFlags& flags) {
  loop::DemoOptions options = flags.options;
  std::error_code error;
  options.program = std::filesystem::read_symlink("/proc/self/exe", error).string();
  options.folder = flags.common.output.empty() ? "build/demo" : flags.common.output;
  if (options.model.empty()) {
    options.model = cached_model();
    if (!std::filesystem::exists(options.model))
      return report_error(flags.common, {ErrorCode::kNetwork, "the demo's model is not in the cache",
                                         options.model, "`./run demo` fetches it; or give --model PATH"});
  }
  if (!flags.common.lock.empty()) {
    const auto held = artifact::open(options.model, open_options(flags.common, artifact::Need::kTensors));
    if (!held) return report_error(flags.common, held.error());
    if (const auto fault = artifact::first_error((*held)->findings()))
      return report_error(flags.common, *fault);
  }
  const auto result = loop::run_demo(options, [&](std::string_view line) {
    if (!flags.common.quiet) std::cerr << "demo: " << printable(line) << "\n";
  });
  if (!result) return report_error(flags.common, result.error());
  const std::string document = dump_pretty(loop::to_json(*result));
  if (const auto written = write_file(options.folder + "/result.json", document); !written)
    return report_error(flags.common, written.error());
  const auto shown = write_stdout(flags.common.is_json() ? document : printable_page(loop::to_text(*result)));
  if (!shown) return report_error(flags.common, shown.error());
  for (const auto& level : result->sweep)
    if (level.failed > 0 || level.completed == 0) return exit_status(ErrorCode::kNo);
  return result->log_agrees ? 0 : exit_status(ErrorCode::kNo);
}

}  // namespace

Verb add_demo(CLI::App& app) {
  auto flags = std::make_shared<DemoFlags>();
  CLI::App* verb =
      app.add_subcommand("demo", "the whole loop on a small real model: inspect, plan, serve, bench, verify");
  add_common_flags(*verb, flags->common);
  verb->get_option("-o")->description(
      "folder for result.json, plan.json and the server's log (default: build/demo)");
  verb->add_option("--model", flags->options.model,
                   "GGUF file or folder (default: the cached SmolLM2-135M-Instruct)");
  verb->add_option("--input-tokens", flags->options.input_tokens, "tokens of each prompt of the sweep")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  verb->add_option("--output-tokens", flags->options.output_tokens, "tokens of each answer of the sweep")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  verb->footer("Examples:\n  plimsoll demo\n  plimsoll demo --model model.gguf -o out --format json");
  return make_verb(verb, flags, run_demo_verb);
}

}  // namespace plimsoll::cli
