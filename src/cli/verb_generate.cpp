// SPDX-License-Identifier: Apache-2.0
// `generate MODEL`: one completion or chat in the terminal, or many as JSON lines.
#include <CLI/CLI.hpp>
#include <fstream>
#include <iostream>
#include <iterator>
#include <memory>

#include "base/log.h"
#include "cli/engine_flags.h"
#include "cli/model_argument.h"
#include "cli/verbs.h"
#include "serve/serve.h"

namespace plimsoll::cli {
namespace {

struct Flags {
  CommonFlags common;
  EngineFlags engine;
  std::string model;
  bool is_jsonl = false;
  int batch = 1;
  std::optional<std::string> prompt, system;
  bool is_chat = false;
  std::optional<std::int64_t> max_tokens, seed, top_k;
  std::optional<double> temperature, top_p, min_p, repetition_penalty;
  std::vector<std::string> stop;
  bool ignore_eos = false;
};

/// The request body that the flags spell; the same reader takes it as over HTTP.
Json body_of(const Flags& flags, const std::string& prompt) {
  Json body = Json::object();
  if (flags.is_chat) {
    Json messages = Json::array();
    if (flags.system) messages.push_back(Json::object({{"role", "system"}, {"content", *flags.system}}));
    messages.push_back(Json::object({{"role", "user"}, {"content", prompt}}));
    body.set("messages", std::move(messages));
  } else {
    body.set("prompt", prompt);
  }
  const auto set = [&](const char* name, const auto& value) {
    if (value) body.set(name, *value);
  };
  set("max_tokens", flags.max_tokens);
  set("temperature", flags.temperature);
  set("top_p", flags.top_p);
  set("top_k", flags.top_k);
  set("min_p", flags.min_p);
  set("repetition_penalty", flags.repetition_penalty);
  set("seed", flags.seed);
  if (flags.ignore_eos) body.set("ignore_eos", true);
  for (const std::string& text : flags.stop) {
    Json stop = body["stop"];
    stop.push_back(text);
    body.set("stop", std::move(stop));
  }
  return body;
}

int run_one(const Flags& flags, serve::Offline& offline) {
  const std::string prompt =
      flags.prompt ? *flags.prompt : std::string(std::istreambuf_iterator<char>(std::cin), {});
  const bool is_streamed = !flags.common.is_json() && flags.common.output.empty();
  Status written;
  const auto answer = offline.run_one(body_of(flags, prompt), [&](std::string_view text) {
    if (is_streamed && written) written = write_stdout(text);
  });
  if (is_streamed && written) written = write_stdout("\n");
  if (!written) return report_error(flags.common, written.error());
  if (!answer)
    return report_error(flags.common,
                        {ErrorCode::kUsage, answer.error().message, answer.error().param.value_or(""), ""});
  if (is_streamed) return 0;
  std::string text;
  if (flags.common.is_json()) {
    Json document = Json::object({{"schema", "plimsoll.generate/1"}});
    for (const auto& [name, value] : answer->members()) document.set(name, value);
    text = dump_pretty(document);
  } else {
    const std::string* content = answer->at_pointer("/choices/0/text").as_string();
    text = (content ? *content : "") + "\n";
  }
  written = write_output(flags.common, text);
  return written ? 0 : report_error(flags.common, written.error());
}

int run_lines(const Flags& flags, serve::Offline& offline) {
  std::ios::sync_with_stdio(false);
  std::ofstream file;
  if (!flags.common.output.empty()) {
    file.open(flags.common.output);
    if (!file)
      return report_error(
          flags.common, {ErrorCode::kUsage, "the file for the answers cannot be created", flags.common.output,
                         "check that the folder exists and is writable"});
  }
  std::ostream& out = file.is_open() ? static_cast<std::ostream&>(file) : std::cout;
  const auto num_failed = offline.run_lines(std::cin, out, flags.batch);
  if (!num_failed) return report_error(flags.common, num_failed.error());
  return *num_failed == 0 ? 0 : exit_status(ErrorCode::kNo);
}

int run(Flags& flags) {
  // Lines in, lines out: an error that stops all of them is a document too.
  if (flags.is_jsonl) flags.common.format = "json";
  if (const Status settled = settle_model(flags.model, flags.common); !settled)
    return report_error(flags.common, settled.error());
  auto load = load_options(flags.engine, flags.model, flags.common);
  if (!load) return report_error(flags.common, load.error());
  if (flags.engine.max_num_seqs.empty()) load->engine.max_num_seqs = flags.batch;
  auto offline = serve::Offline::load(*load);
  if (!offline) return report_error(flags.common, offline.error());
  const int status = flags.is_jsonl ? run_lines(flags, **offline) : run_one(flags, **offline);
  if (const Status saved = (*offline)->model().engine->save_prefix_cache(); !saved)
    log_warning(saved.error());
  return status;
}

}  // namespace

Verb add_generate(CLI::App& app) {
  auto flags = std::make_shared<Flags>();
  CLI::App* verb =
      app.add_subcommand("generate", "one completion or chat in the terminal, or many as JSON lines");
  verb->add_option("MODEL", flags->model, kModelHelp);
  verb->add_flag("--jsonl", flags->is_jsonl, "one request per line of stdin, one answer per line of stdout");
  verb->add_option("--batch", flags->batch, "lines under way at a time")
      ->check(CLI::Range(1, 256))
      ->capture_default_str();
  verb->add_option("--prompt", flags->prompt,
                   "text to go on from, or the question with --chat (default: stdin)");
  verb->add_flag("--chat", flags->is_chat, "ask through the model's chat template");
  verb->add_option("--system", flags->system, "system message of --chat");
  verb->add_option("--max-tokens", flags->max_tokens,
                   "longest answer (default: 16, with --chat the context)");
  verb->add_option("--temperature", flags->temperature, "0: the likeliest token each time");
  verb->add_option("--top-p", flags->top_p, "choose among the likeliest tokens of this much probability");
  verb->add_option("--top-k", flags->top_k, "choose among so many likeliest tokens");
  verb->add_option("--min-p", flags->min_p,
                   "drop tokens below this share of the likeliest one's probability");
  verb->add_option("--repetition-penalty", flags->repetition_penalty, "above 1: repeat less");
  verb->add_option("--seed", flags->seed, "the same seed gives the same answer");
  verb->add_option("--stop", flags->stop, "end at this text; may be given several times")
      ->allow_extra_args(false);
  verb->add_flag("--ignore-eos", flags->ignore_eos, "go on to --max-tokens");
  add_engine_flags(*verb, flags->engine);
  add_common_flags(*verb, flags->common);
  verb->footer(
      std::string(
          "Examples:\n"
          "  plimsoll generate ./SmolLM2-135M-Instruct.Q4_1.gguf --chat --prompt 'Why is the sky blue?'\n"
          "  echo '{\"prompt_token_ids\":[1,2,3],\"max_tokens\":8,\"temperature\":0}' | plimsoll generate "
          "./model --jsonl\n"
          "  plimsoll generate ./model --jsonl --batch 8 --dtype float32 < requests.jsonl > answers.jsonl") +
      kModelEnvironment);
  return make_verb(verb, flags, run);
}

}  // namespace plimsoll::cli
