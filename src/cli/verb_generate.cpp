// SPDX-License-Identifier: Apache-2.0
// `generate MODEL`: one completion or chat in the terminal, many as JSON lines, or a batch file worked off.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <memory>

#include "base/file_lock.h"
#include "base/log.h"
#include "cli/engine_flags.h"
#include "cli/idle_flags.h"
#include "cli/model_argument.h"
#include "cli/verbs.h"
#include "report/report.h"
#include "serve/serve.h"

namespace plimsoll::cli {
namespace {

struct Flags {
  const CLI::App* verb = nullptr;
  CommonFlags common;
  EngineFlags engine;
  std::string model;
  bool is_jsonl = false;
  int batch = 1;
  std::string batch_file;
  std::vector<std::string> served_model_names;
  std::optional<std::string> prompt, system;
  bool is_chat = false;
  std::optional<std::int64_t> max_tokens, seed, top_k;
  std::optional<double> temperature, top_p, min_p, repetition_penalty;
  std::vector<std::string> stop;
  bool ignore_eos = false;
};

Status check_flags(const Flags& flags) {
  const bool is_batch = !flags.batch_file.empty(), is_one = !is_batch && !flags.is_jsonl;
  return refuse_idle_flags(
      *flags.verb,
      {{is_batch, {"--jsonl"}, "beside --batch-file: its lines have a form of their own"},
       {!is_one,
        {"--prompt", "--chat", "--system", "--max-tokens", "--temperature", "--top-p", "--top-k", "--min-p",
         "--repetition-penalty", "--seed", "--stop", "--ignore-eos"},
        fmt::format("beside {}: each line says it for itself", is_batch ? "--batch-file" : "--jsonl")},
       {is_batch, {"--batch"}, "beside --batch-file: --max-num-seqs says how many requests run at a time"},
       {is_one, {"--batch"}, "without --jsonl: there is one request"},
       {!is_batch, {"--served-model-name"}, "without --batch-file: nothing else names the model"},
       {is_one && !flags.is_chat, {"--system", "--chat-template"}, "without --chat"}});
}

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

/// Where lines of answers go: the -o file, which the caller holds a lock of, or stdout.
Result<std::ostream*> open_answers(const Flags& flags, std::ofstream& file, std::ios::openmode mode) {
  if (flags.common.output.empty()) return &std::cout;
  file.open(flags.common.output, std::ios::out | std::ios::binary | mode);
  if (!file)
    return fail(ErrorCode::kUsage, "the file for the answers cannot be created", flags.common.output,
                "check that the folder exists and is writable");
  return &file;
}

/// Of the -o file, where there is one.
Result<FileLock> lock_answers(const Flags& flags) {
  return flags.common.output.empty() ? FileLock() : FileLock::take(flags.common.output);
}

int run_lines(const Flags& flags, serve::Offline& offline) {
  std::ios::sync_with_stdio(false);
  const auto lock = lock_answers(flags);
  if (!lock) return report_error(flags.common, lock.error());
  std::ofstream file;
  const auto out = open_answers(flags, file, std::ios::trunc);
  if (!out) return report_error(flags.common, out.error());
  const auto num_failed = offline.run_lines(std::cin, **out, flags.batch);
  if (!num_failed) return report_error(flags.common, num_failed.error());
  return *num_failed == 0 ? 0 : exit_status(ErrorCode::kNo);
}

Result<serve::Batch> open_batch(const Flags& flags) {
  if (flags.batch_file == "-") return serve::Batch::open(std::cin, flags.common.output);
  std::error_code problem;
  std::ifstream file;
  if (std::filesystem::is_regular_file(flags.batch_file, problem))
    file.open(flags.batch_file, std::ios::binary);
  if (!file.is_open())
    return fail(ErrorCode::kMalformed, "the requests cannot be read", flags.batch_file,
                "name a file that is there and readable, or - for stdin");
  return serve::Batch::open(file, flags.common.output);
}

/// Answers what is open of the batch; nothing is loaded when that is nothing.
Status answer_batch(const Flags& flags, serve::LoadOptions& load, serve::Batch& batch) {
  if (batch.is_done()) return {};
  std::ofstream file;
  PLIMSOLL_TRY(std::ostream* const out, open_answers(flags, file, std::ios::app));
  auto progress = std::make_unique<LoadProgress>(flags.common, load);
  PLIMSOLL_TRY(serve::LoadedModel model, serve::load_model(load));
  progress.reset();
  report::ProgressLine line(flags.common.quiet);
  const auto begin = std::chrono::steady_clock::now();
  serve::BatchOptions options;
  options.max_num_seqs = load.engine.max_num_seqs;
  options.on_answer = [&](const serve::BatchCounts& counts) {
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - begin;
    line.show(
        fmt::format("{}/{} requests, {} failed, {:.1f} output tokens/s", counts.answered, counts.requests,
                    counts.failed, static_cast<double>(counts.completion_tokens) / elapsed.count()),
        counts.answered == counts.requests);
  };
  PLIMSOLL_TRY_VOID(batch.run(model, *out, options));
  if (const Status saved = model.engine->save_prefix_cache(); !saved) log_warning(saved.error());
  return {};
}

int run_batch(const Flags& flags, serve::LoadOptions& load) {
  std::error_code none;
  if (std::filesystem::equivalent(flags.batch_file, flags.common.output, none))
    return report_error(flags.common, Error{ErrorCode::kUsage, "requests and answers are one file",
                                            flags.common.output, "name another file for the answers"});
  // The answers are lines, however many: they cannot be the one document as well.
  if (flags.common.is_json() && flags.common.output.empty())
    return report_error(
        flags.common,
        Error{ErrorCode::kUsage, "with --format json the summary of the batch is the one document on stdout",
              "--format", "name a file for the answers: -o FILE"});
  const auto lock = lock_answers(flags);
  if (!lock) return report_error(flags.common, lock.error());
  auto batch = open_batch(flags);
  if (!batch) return report_error(flags.common, batch.error());
  const serve::BatchCounts& counts = batch->counts();
  if (counts.answered_before > 0)
    log_info(fmt::format("{} of {} requests are answered in {} already", counts.answered_before,
                         counts.requests, flags.common.output));
  load.served_model_names = flags.served_model_names;
  if (const Status done = answer_batch(flags, load, *batch); !done)
    return report_error(flags.common, done.error());
  if (flags.common.is_json()) {
    const Status written =
        write_stdout(dump_pretty(Json::object({{"schema", "plimsoll.generate_batch/1"},
                                               {"requests", counts.requests},
                                               {"answered_before", counts.answered_before},
                                               {"failed", counts.failed},
                                               {"completion_tokens", counts.completion_tokens},
                                               {"output", flags.common.output}})));
    if (!written) return report_error(flags.common, written.error());
  }
  return counts.failed == 0 ? 0 : exit_status(ErrorCode::kNo);
}

int run(Flags& flags) {
  // Lines in, lines out: an error that stops all of them is a document too.
  if (flags.is_jsonl) flags.common.format = "json";
  if (const Status sound = check_flags(flags); !sound) return report_error(flags.common, sound.error());
  if (const Status settled = settle_model(flags.model, flags.common); !settled)
    return report_error(flags.common, settled.error());
  auto load = load_options(flags.engine, flags.model, flags.common);
  if (!load) return report_error(flags.common, load.error());
  if (!flags.batch_file.empty()) return run_batch(flags, *load);
  if (flags.engine.max_num_seqs.empty()) load->engine.max_num_seqs = flags.batch;
  auto progress = std::make_unique<LoadProgress>(flags.common, *load);
  auto offline = serve::Offline::load(*load);
  progress.reset();
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
      app.add_subcommand("generate", "one completion or chat in the terminal, or many from a file");
  verb->add_option("MODEL", flags->model, kModelHelp);
  flags->verb = verb;
  verb->add_flag("--jsonl", flags->is_jsonl, "one request per line of stdin, one answer per line of stdout");
  verb->add_option("--batch-file,-i,--input-file", flags->batch_file,
                   "requests in OpenAI's batch form, one a line as below (- is stdin); answers are lines as "
                   "well, and with -o FILE a second start goes on where the first one stopped");
  verb->add_option("--served-model-name", flags->served_model_names,
                   "names that requests of --batch-file may give as their model (default: MODEL)");
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
          "  plimsoll generate ./model --jsonl --batch 8 --dtype float32 < requests.jsonl > answers.jsonl\n"
          "  plimsoll generate ./model --batch-file batch.jsonl -o answers.jsonl\n"
          "A line of batch.jsonl (docs/formats/batch.md):\n"
          "  "
          "{\"custom_id\":\"r1\",\"method\":\"POST\",\"url\":\"/v1/chat/completions\",\"body\":{\"messages\":"
          "[{\"role\":\"user\",\"content\":\"Why is the sky blue?\"}],\"max_tokens\":50}}\n"
          "Of --jsonl: {\"prompt\":\"The sky is\",\"max_tokens\":8}, or \"messages\", or "
          "\"prompt_token_ids\"") +
      kModelEnvironment);
  return make_verb(verb, flags, run);
}

}  // namespace plimsoll::cli
