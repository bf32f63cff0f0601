// SPDX-License-Identifier: Apache-2.0
#include "cli/cli.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <exception>
#include <iostream>
#include <iterator>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "base/log.h"
#include "base/machine.h"
#include "base/mapped_file.h"
#include "cli/verbs.h"

namespace plimsoll::cli {

void add_common_flags(CLI::App& verb, CommonFlags& flags) {
  verb.add_option("--format", flags.format, "text for people, json for programs")
      ->check(CLI::IsMember({"text", "json"}))
      ->capture_default_str();
  verb.add_option("-o,--output", flags.output, "write the result to this file instead of stdout");
  verb.add_option("--lock", flags.lock, "hold the model against this lock record of `plimsoll pull`");
  verb.add_flag("-q", flags.quiet, "no progress on stderr");
  verb.add_flag("-v", flags.verbose, "more on stderr");
}

int exit_status(ErrorCode code) {
  switch (code) {
    case ErrorCode::kNo:
      return 1;
    case ErrorCode::kUsage:
      return 2;
    case ErrorCode::kMalformed:
      return 3;
    case ErrorCode::kUnsupported:
      return 4;
    case ErrorCode::kNetwork:
      return 5;
    case ErrorCode::kInternal:
      return 70;
  }
  return 70;
}

Status write_stdout(std::string_view text) {
  std::cout.write(text.data(), static_cast<std::streamsize>(text.size())).flush();
  if (!std::cout)
    return fail(ErrorCode::kUsage, "the result cannot be written", "stdout",
                "check that the disk is not full and that somebody reads, or give -o FILE");
  return {};
}

Status write_output(const CommonFlags& flags, std::string_view text) {
  return flags.output.empty() ? write_stdout(text) : write_file(flags.output, text);
}

int report_error(const CommonFlags& flags, const Error& error) {
  std::cerr << "plimsoll: " << error.describe() << "\n";
  if (flags.is_json()) {
    Json body = Json::object({{"code", to_string(error.code)},
                              {"message", error.message},
                              {"where", error.where},
                              {"fix", error.fix}});
    std::cout << dump_pretty(Json::object({{"schema", "plimsoll.error/1"}, {"error", std::move(body)}}))
              << std::flush;
  }
  return exit_status(error.code);
}

namespace {

void apply_log_level(const CommonFlags& flags) {
  if (flags.quiet) set_log_level(LogLevel::kQuiet);
  if (!flags.verbose) return;
  set_log_level(LogLevel::kVerbose);
  const Machine machine = read_machine();
  log_debug("plimsoll " PLIMSOLL_VERSION " on " +
            (machine.cpu_model.empty() ? "an unknown CPU" : machine.cpu_model) + " (" +
            describe(machine.cores) + "), " +
            (machine.memory_available ? as_gib(*machine.memory_available) : "unknown memory") + " free");
}

}  // namespace

// CLI11 only says that a subcommand is required: name the word that is none, and the verbs there are.
std::optional<Error> unknown_verb(const std::vector<Verb>& verbs, int argc, char** argv) {
  if (argc < 2 || argv[1][0] == '-') return std::nullopt;
  std::string names;
  for (const Verb& verb : verbs) {
    if (verb.command->get_name() == argv[1]) return std::nullopt;
    names += (names.empty() ? "" : ", ") + verb.command->get_name();
  }
  return Error{ErrorCode::kUsage, "there is no verb \"" + std::string(argv[1]) + "\"", "",
               "the verbs are " + names};
}

// A value that a script left empty is not "as if it were absent": the answer would be about something else.
std::optional<Error> empty_value(const CLI::App& command) {
  constexpr std::string_view kNeverEmpty[] = {"--max-model-len",
                                              "--gpu",
                                              "--workload",
                                              "--lock",
                                              "--tensor",
                                              "--kv-cache-dtype",
                                              "--engine",
                                              "--quantization",
                                              "--threads",
                                              "--block-size",
                                              "--kv-cache-memory-bytes",
                                              "--max-num-seqs",
                                              "--dtype",
                                              "--perplexity",
                                              "--batch-file",
                                              "--base-url",
                                              "--dataset-path",
                                              "--num-gpu-blocks-override",
                                              "--max-num-batched-tokens"};
  for (const CLI::Option* option : command.get_options()) {
    const std::string name = option->get_name(false, false);
    const bool is_meant =
        std::find(std::begin(kNeverEmpty), std::end(kNeverEmpty), name) != std::end(kNeverEmpty);
    const auto& values = option->results();
    if (is_meant && std::find(values.begin(), values.end(), "") != values.end())
      return Error{ErrorCode::kUsage, name + " was given an empty value", name,
                   "give a value, or leave the flag out"};
  }
  for (const CLI::App* inner : command.get_subcommands())
    if (auto error = empty_value(*inner)) return error;
  return std::nullopt;
}

// The one that is asked for, or all of them: a millisecond goes into their flags.
std::vector<Verb> add_verbs(CLI::App& app, std::string_view asked) {
  constexpr std::pair<std::string_view, Verb (*)(CLI::App&)> kVerbs[] = {
      {"demo", add_demo},       {"generate", add_generate}, {"eval", add_eval}, {"serve", add_serve},
      {"inspect", add_inspect}, {"pull", add_pull},         {"plan", add_plan}, {"verify", add_verify},
      {"bench", add_bench},     {"tokens", add_tokens},     {"top", add_top},
  };
  const bool is_known = std::any_of(std::begin(kVerbs), std::end(kVerbs),
                                    [&](const auto& verb) { return verb.first == asked; });
  std::vector<Verb> verbs;
  for (const auto& [name, add] : kVerbs)
    if (!is_known || name == asked) verbs.push_back(add(app));
  return verbs;
}

int run(int argc, char** argv) {
  CLI::App app("plimsoll: from a folder of numbers to served, measured tokens without surprises", "plimsoll");
  app.set_version_flag("--version", "plimsoll " PLIMSOLL_VERSION);
  app.require_subcommand(1);
  const std::vector<Verb> verbs = add_verbs(app, argc > 1 ? argv[1] : "");
  if (const auto error = unknown_verb(verbs, argc, argv)) return report_error({}, *error);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    const int status = app.exit(error);  // prints help, version or the usage error
    if (status != 0) return exit_status(ErrorCode::kUsage);
    const Status written = write_stdout("");
    return written ? 0 : report_error({}, written.error());
  }
  try {
    for (const Verb& verb : verbs) {
      if (!verb.command->parsed()) continue;
      apply_log_level(*verb.common);
      if (const auto error = empty_value(*verb.command)) return report_error(*verb.common, *error);
      return verb.run();
    }
  } catch (const std::exception& error) {
    std::cerr << "plimsoll: internal error: " << error.what() << "; please report it\n";
    return exit_status(ErrorCode::kInternal);
  }
  return exit_status(ErrorCode::kUsage);
}

}  // namespace plimsoll::cli
