// SPDX-License-Identifier: Apache-2.0
// `tokens encode|decode|render|count`: flags -> text room -> print.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <iterator>
#include <memory>

#include "artifact/artifact.h"
#include "base/mapped_file.h"
#include "cli/model_argument.h"
#include "cli/verbs.h"
#include "model/context_length.h"
#include "model/model.h"
#include "report/report.h"
#include "text/template_renderer.h"
#include "text/text.h"
#include "text/token_lines.h"

namespace plimsoll::cli {
namespace {

using ArtifactPtr = std::shared_ptr<const artifact::Artifact>;
using TokenizerPtr = std::shared_ptr<const text::Tokenizer>;

struct Flags {
  CommonFlags common;
  std::string model, file, chat, tools, kwargs, template_name, chat_template;
  std::optional<std::string> text, ids;
  bool jsonl = false, no_special = false, no_parse_special = false, skip_special = false;
  bool continue_final_message = false, no_generation_prompt = false, pieces = false, offsets = false;
  std::optional<std::int64_t> max_model_len;
  std::int64_t reserved_output = 1;

  text::EncodeOptions encode_options() const { return {!no_special, !no_parse_special}; }
};

std::string read_all(std::istream& in) {
  return {std::istreambuf_iterator<char>(in), {}};
}

Result<std::string> input_text(const Flags& flags) {
  if (flags.text) return *flags.text;
  if (!flags.file.empty()) return read_file(flags.file);
  return read_all(std::cin);
}

Result<TokenizerPtr> open_tokenizer(const Flags& flags) {
  PLIMSOLL_TRY(const ArtifactPtr artifact,
               artifact::open(flags.model, open_options(flags.common, artifact::Need::kText)));
  return text::load_tokenizer(*artifact);
}

/// The context that --chat, --tools and --kwargs describe.
Result<Json> chat_context(const Flags& flags) {
  text::Conversation conversation;
  PLIMSOLL_TRY(conversation.chat,
               flags.chat.empty() ? parse_json(read_all(std::cin), "stdin") : read_json_file(flags.chat));
  if (!flags.tools.empty()) {
    PLIMSOLL_TRY(conversation.tools, read_json_file(flags.tools));
  }
  if (!flags.kwargs.empty()) {
    PLIMSOLL_TRY(conversation.variables, parse_json(flags.kwargs, "--kwargs"));
    if (!conversation.variables.is_object())
      return fail(ErrorCode::kUsage, "--kwargs takes a JSON object", "--kwargs");
  }
  conversation.add_generation_prompt = !flags.no_generation_prompt;
  conversation.continue_final_message = flags.continue_final_message;
  Json context = text::chat_context(std::move(conversation));
  if (!context["messages"].is_array())
    return fail(ErrorCode::kMalformed, "the conversation is no array of messages and no object with messages",
                flags.chat.empty() ? "stdin" : flags.chat);
  return context;
}

Result<text::TemplateRenderer> open_renderer(const Flags& flags, ArtifactPtr artifact) {
  text::TemplateChoice choice{std::move(artifact), {}, flags.template_name};
  if (!flags.chat_template.empty()) {
    PLIMSOLL_TRY(choice.source, read_file(flags.chat_template));
  }
  return text::TemplateRenderer(std::move(choice));
}

/// Runs every line of stdin; a failed line gives its error and the work goes on. An answer that cannot be
/// written ends it.
int run_lines(const Flags& flags, const std::function<text::LineAnswer(const Json&)>& work) {
  if (!flags.common.output.empty())
    return report_error(flags.common,
                        {ErrorCode::kUsage, "--jsonl answers line by line on standard output", "-o", ""});
  bool all_done = true;
  std::string line;
  while (std::getline(std::cin, line)) {
    const text::LineAnswer answer = text::answer_line(line, work);
    all_done = all_done && answer.has_value();
    const Status written = write_stdout(dump(text::line_json(answer)) + "\n");
    if (!written) return report_error(flags.common, written.error());
  }
  return all_done ? 0 : exit_status(ErrorCode::kNo);
}

int print(const Flags& flags, const Json& answer, const std::string& text) {
  std::string out = text;
  if (flags.common.is_json()) {
    Json document = Json::object({{"schema", "plimsoll.tokens/1"}});
    for (const auto& [key, value] : answer.members()) document.set(key, value);
    out = dump_pretty(document);
  }
  const Status written = write_output(flags.common, out);
  return written ? 0 : report_error(flags.common, written.error());
}

/// The ids, and for the eye their pieces: always on a terminal, elsewhere when asked.
std::string encoded_text(const Flags& flags, const Json& answer) {
  std::string out;
  for (const Json& id : answer["ids"].items()) out += (out.empty() ? "" : ",") + dump(id);
  out += "\n";
  const bool is_coloured = flags.common.output.empty() && report::stdout_takes_colours();
  if (!is_coloured && !flags.pieces) return out;
  std::vector<std::string> pieces;
  for (const Json& piece : answer["pieces"].items()) pieces.push_back(*piece.as_string());
  const char* unit = pieces.size() == 1 ? " token  " : " tokens  ";
  return out + std::to_string(pieces.size()) + unit + report::side_by_side(pieces, is_coloured) + "\n";
}

int run_encode(const Flags& flags) {
  const auto tokenizer = open_tokenizer(flags);
  if (!tokenizer) return report_error(flags.common, tokenizer.error());
  if (flags.jsonl)
    return run_lines(flags, [&](const Json& line) {
      return text::encode_line(**tokenizer, line, flags.encode_options(), flags.offsets);
    });
  const auto text = input_text(flags);
  if (!text) return report_error(flags.common, text.error());
  const Json answer = text::encoded(**tokenizer, *text, flags.encode_options(), flags.offsets);
  return print(flags, answer, encoded_text(flags, answer));
}

int run_decode(const Flags& flags) {
  const auto tokenizer = open_tokenizer(flags);
  if (!tokenizer) return report_error(flags.common, tokenizer.error());
  const auto decode = [&](const Json& line) {
    return text::decode_line(*tokenizer, line, flags.skip_special);
  };
  if (flags.jsonl) return run_lines(flags, decode);
  auto ids = text::parse_ids(flags.ids ? *flags.ids : read_all(std::cin));
  if (!ids) return report_error(flags.common, ids.error());
  const text::LineAnswer answer = decode(Json::object({{"ids", std::move(*ids)}}));
  if (!answer) return report_error(flags.common, text::line_error(answer.error()));
  return print(flags, *answer, *(*answer)["text"].as_string() + "\n");
}

int run_render(const Flags& flags) {
  ArtifactPtr artifact;
  if (!flags.model.empty()) {
    auto opened = artifact::open(flags.model, open_options(flags.common, artifact::Need::kText));
    if (!opened) return report_error(flags.common, opened.error());
    artifact = std::move(*opened);
  }
  auto renderer = open_renderer(flags, std::move(artifact));
  if (!renderer) return report_error(flags.common, renderer.error());
  if (flags.jsonl) return run_lines(flags, [&](const Json& line) { return renderer->render(line); });
  const auto context = chat_context(flags);
  if (!context) return report_error(flags.common, context.error());
  const text::LineAnswer answer = renderer->render(*context);
  if (!answer) return report_error(flags.common, text::line_error(answer.error()));
  return print(flags, *answer, *(*answer)["text"].as_string());
}

Result<text::TokenCount> counted(const Flags& flags, const ArtifactPtr& artifact) {
  PLIMSOLL_TRY(const TokenizerPtr tokenizer, text::load_tokenizer(*artifact));
  if (flags.chat.empty()) {
    PLIMSOLL_TRY(const std::string text, input_text(flags));
    return text::count_text(*tokenizer, text, flags.encode_options());
  }
  PLIMSOLL_TRY(Json context, chat_context(flags));
  PLIMSOLL_TRY(auto renderer, open_renderer(flags, artifact));
  auto count = text::count_conversation(*tokenizer, renderer, std::move(context));
  if (!count) return fail(text::line_error(count.error()));
  return *count;
}

/// The context length that counts: the flag's, else the model's; nothing when neither is known.
std::optional<std::int64_t> context_tokens(const Flags& flags, const artifact::Artifact& artifact) {
  if (flags.max_model_len) return flags.max_model_len;
  const auto spec = model::read_spec(artifact);
  if (!spec) return std::nullopt;
  const std::int64_t longest = model::default_length(artifact, *spec);
  return longest > 0 ? std::optional(longest) : std::nullopt;
}

int run_count(const Flags& flags) {
  const auto artifact = artifact::open(flags.model, open_options(flags.common, artifact::Need::kText));
  if (!artifact) return report_error(flags.common, artifact.error());
  const auto count = counted(flags, *artifact);
  if (!count) return report_error(flags.common, count.error());
  const auto context = context_tokens(flags, **artifact);
  std::optional<std::int64_t> room;
  if (context) room = text::input_room(*count, Tokens(*context), Tokens(flags.reserved_output)).value;
  const Json answer = Json::object({{"tokens", count->tokens.value},
                                    {"template_overhead_tokens", count->template_overhead.value},
                                    {"max_model_len", context},
                                    {"max_input_tokens", room}});
  std::string text;
  for (const auto& [key, value] : answer.members()) text += key + " " + dump(value) + "\n";
  return print(flags, answer, text);
}

CLI::App* add_command(CLI::App& tokens, const std::shared_ptr<Flags>& flags, const char* name,
                      const char* help, const char* examples) {
  CLI::App* command = tokens.add_subcommand(name, help);
  add_common_flags(*command, flags->common);
  command->add_option("MODEL", flags->model,
                      "folder, .gguf file, org/name[@revision] of a hub, ollama:NAME, lock record, or a "
                      "tokenizer.json, tekken.json, *.tiktoken or *.model");
  command->footer(std::string("Examples:\n") + examples + kModelEnvironment);
  return command;
}

void add_text_flags(CLI::App& command, Flags& flags) {
  command.add_option("--text", flags.text, "the text itself");
  command.add_option("--file", flags.file, "a file with the text (default: stdin)");
  command.add_flag("--no-special", flags.no_special, "do not add BOS or EOS");
  command.add_flag("--no-parse-special", flags.no_parse_special,
                   "special strings in the text are plain text");
}

void add_chat_flags(CLI::App& command, Flags& flags) {
  command.add_option("--chat", flags.chat, "JSON file: an array of messages, or an object with messages");
  command.add_option("--tools", flags.tools, "JSON file: an array of tools");
  command.add_option("--kwargs", flags.kwargs, "JSON object of further template variables");
  command.add_option("--template-name", flags.template_name, "which of several templates");
  command.add_option("--chat-template", flags.chat_template, "a template file instead of the model's");
  command.add_flag("--continue-final-message", flags.continue_final_message, "leave the last message open");
  command.add_flag("--no-generation-prompt", flags.no_generation_prompt, "do not open an answer");
}

}  // namespace

Verb add_tokens(CLI::App& app) {
  auto flags = std::make_shared<Flags>();
  CLI::App* tokens = app.add_subcommand("tokens", "token ids, chat templates, how much input is left");
  tokens->require_subcommand(1);
  CLI::App* encode =
      add_command(*tokens, flags, "encode", "text to token ids",
                  "  plimsoll tokens encode ./model --text 'Why is the sky blue?'\n"
                  "  echo '{\"text\":\"hi\"}' | plimsoll tokens encode tokenizer.json --jsonl");
  add_text_flags(*encode, *flags);
  encode->add_flag("--pieces", flags->pieces, "show the pieces side by side (always on a terminal)");
  encode->add_flag("--offsets", flags->offsets, "in JSON, the characters of the text behind each id");
  CLI::App* decode = add_command(*tokens, flags, "decode", "token ids to text",
                                 "  plimsoll tokens decode ./model --ids 504,3980 --skip-special");
  decode->add_option("--ids", flags->ids, "ids as 1,2,3 (default: stdin)");
  decode->add_flag("--skip-special", flags->skip_special, "leave special tokens out");
  CLI::App* render = add_command(*tokens, flags, "render", "a conversation to the prompt the model sees",
                                 "  plimsoll tokens render ./model --chat chat.json\n"
                                 "  plimsoll tokens render --chat-template t.jinja --jsonl < lines.jsonl");
  add_chat_flags(*render, *flags);
  CLI::App* count = add_command(*tokens, flags, "count",
                                "tokens of a text or conversation, and the most that content may have",
                                "  plimsoll tokens count ./model --chat chat.json --reserve-output 512");
  add_text_flags(*count, *flags);
  add_chat_flags(*count, *flags);
  count->add_option("--max-model-len", flags->max_model_len, "context length instead of the model's")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{INT32_MAX}));
  count->add_option("--reserve-output", flags->reserved_output, "tokens kept free for the answer")
      ->capture_default_str()
      ->check(CLI::Range(std::int64_t{0}, std::int64_t{INT32_MAX}));
  for (CLI::App* command : {encode, decode, render})
    command->add_flag("--jsonl", flags->jsonl, "one JSON object per line on stdin and stdout");
  return {tokens, {flags, &flags->common}, [=] {
            const bool needs_model = !render->parsed() || flags->chat_template.empty();
            if (const Status settled = settle_model(flags->model, flags->common); !settled && needs_model)
              return report_error(flags->common, settled.error());
            if (encode->parsed()) return run_encode(*flags);
            if (decode->parsed()) return run_decode(*flags);
            return render->parsed() ? run_render(*flags) : run_count(*flags);
          }};
}

}  // namespace plimsoll::cli
