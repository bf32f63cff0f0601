// SPDX-License-Identifier: Apache-2.0
// tokens encode|decode|render|count: text to ids and back, chat templates, what is left of the context.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <iostream>
#include <iterator>
#include <memory>

#include "artifact/artifact.h"
#include "base/mapped_file.h"
#include "base/utf8.h"
#include "cli/verbs.h"
#include "model/model.h"
#include "text/chat.h"
#include "text/text.h"

namespace plimsoll::cli {
namespace {

using ArtifactPtr = std::shared_ptr<const artifact::Artifact>;
using TokenizerPtr = std::shared_ptr<const text::Tokenizer>;

struct Flags {
  CommonFlags common;
  std::string model, text, file, ids, chat, tools, kwargs, template_name, chat_template;
  bool has_text = false;
  bool jsonl = false, no_special = false, no_parse_special = false, skip_special = false;
  bool continue_final_message = false, no_generation_prompt = false;
  std::int64_t max_model_len = 0;
  std::int64_t reserved_output = 1;
};

/// One line or one call that could not be done: jsonl prints it and goes on.
struct Failure {
  std::string type;
  std::string message;
  int line = 0;
};
using Answer = tl::expected<Json, Failure>;

tl::unexpected<Failure> failure(std::string type, std::string message, int line = 0) {
  return tl::unexpected(Failure{std::move(type), std::move(message), line});
}

Json to_json(const Failure& failure) {
  Json body = Json::object({{"class", failure.type}, {"message", failure.message}});
  if (failure.line > 0) body.set("line", failure.line);
  return Json::object({{"error", std::move(body)}});
}

std::string read_all(std::istream& in) {
  return {std::istreambuf_iterator<char>(in), {}};
}

Result<std::string> input_text(const Flags& flags) {
  if (flags.has_text) return flags.text;
  if (!flags.file.empty()) return read_file(flags.file);
  return read_all(std::cin);
}

Json ids_json(const std::vector<text::TokenId>& ids) {
  Json out = Json::array();
  for (const text::TokenId id : ids) out.push_back(id);
  return out;
}

Json encoded(const text::Tokenizer& tokenizer, std::string_view text, const text::EncodeOptions& options) {
  const auto ids = tokenizer.encode(text, options);
  Json pieces = Json::array();
  for (const text::TokenId id : ids) pieces.push_back(replace_invalid_utf8(tokenizer.token_bytes(id)));
  return Json::object({{"ids", ids_json(ids)}, {"pieces", std::move(pieces)}});
}

std::optional<std::string> from_hex(std::string_view hex) {
  std::string bytes;
  if (hex.size() % 2 != 0) return std::nullopt;
  for (std::size_t i = 0; i < hex.size(); i += 2) {
    unsigned value = 0;
    const auto [end, error] = std::from_chars(hex.data() + i, hex.data() + i + 2, value, 16);
    if (error != std::errc{} || end != hex.data() + i + 2) return std::nullopt;
    bytes += static_cast<char>(value);
  }
  return bytes;
}

Answer encode_line(const text::Tokenizer& tokenizer, const Flags& flags, const Json& line) {
  text::EncodeOptions options;
  options.add_special_tokens = line["add_special_tokens"].as_bool().value_or(!flags.no_special);
  options.parse_special = line["parse_special"].as_bool().value_or(!flags.no_parse_special);
  if (const std::string* text = line["text"].as_string()) return encoded(tokenizer, *text, options);
  const std::string* hex = line["hex"].as_string();
  if (!hex) return failure("ValueError", "the line holds neither text nor hex");
  const auto bytes = from_hex(*hex);
  if (!bytes) return failure("ValueError", "hex holds no pairs of hexadecimal digits");
  return encoded(tokenizer, *bytes, options);
}

Json streamed(const TokenizerPtr& tokenizer, const std::vector<text::TokenId>& ids, bool skip_special) {
  text::StreamDecoder decoder(tokenizer, skip_special);
  Json chunks = Json::array();
  std::string all;
  for (const text::TokenId id : ids) {
    const auto chunk = decoder.push(id);
    if (chunk) all += *chunk;
    chunks.push_back(chunk);
  }
  const std::string rest = decoder.flush();
  return Json::object({{"chunks", std::move(chunks)}, {"flush", rest}, {"text", all + rest}});
}

Answer decode_line(const TokenizerPtr& tokenizer, const Flags& flags, const Json& line) {
  if (!line["ids"].is_array()) return failure("ValueError", "the line holds no array ids");
  std::vector<text::TokenId> ids;
  for (const Json& item : line["ids"].items()) {
    const auto id = item.as_integer();
    if (!id || *id < 0 || *id > INT32_MAX) return failure("ValueError", "not a token id: " + dump(item));
    ids.push_back(static_cast<text::TokenId>(*id));
  }
  const bool skip = line["skip_special_tokens"].as_bool().value_or(flags.skip_special);
  if (line["stream"].as_bool().value_or(false)) return streamed(tokenizer, ids, skip);
  return Json::object({{"text", tokenizer->decode(ids, skip)}});
}

/// Finds, parses and keeps the templates of one model or file.
class Renderer {
 public:
  Renderer(const Flags& flags, ArtifactPtr artifact) : flags_(flags), artifact_(std::move(artifact)) {}

  Answer render(const Json& line) {
    const std::string* named = line["template_name"].as_string();
    auto parsed =
        find(named ? *named : flags_.template_name, line["tools"].is_array() && line["tools"].size() > 0);
    if (!parsed) return tl::unexpected(parsed.error());
    Json context = Json::object();
    for (const auto& [key, value] : line.members())
      if (key != "now") context.set(key, value);
    for (const char* token : {"bos_token", "eos_token"})
      if (context[token].is_null())
        context.set(token, artifact_ ? text::special_token_text(*artifact_, token) : "");
    text::ChatOptions options;
    const std::string* format = line["content_format"].as_string();
    options.normalize_content = format && *format == "auto";
    options.continue_final_message = line["continue_final_message"].as_bool().value_or(false);
    if (const std::string* now = line["now"].as_string()) options.now = *now;
    auto text = text::render_chat(**parsed, context, options);
    if (!text) return failure(text.error().type, text.error().message, text.error().line);
    return Json::object({{"text", std::move(*text)}});
  }

 private:
  using Parsed = tl::expected<std::shared_ptr<const text::ChatTemplate>, Failure>;

  Parsed find(const std::string& name, bool has_tools) {
    std::optional<std::string> source;
    if (!flags_.chat_template.empty()) {
      auto file = read_file(flags_.chat_template);
      if (!file) return failure("ValueError", file.error().describe());
      source = std::move(*file);
    } else if (artifact_) {
      source = text::choose_chat_template(*artifact_, name, has_tools);
    }
    if (!source)
      return failure("ValueError", name.empty() ? "the model has no chat template"
                                                : "the model has no chat template named " + name);
    if (last_ && *source == last_source_) return last_;
    auto parsed = text::ChatTemplate::parse(*source);
    if (!parsed) return failure(parsed.error().type, parsed.error().message, parsed.error().line);
    last_source_ = std::move(*source);
    last_ = std::move(*parsed);
    return last_;
  }

  const Flags& flags_;
  ArtifactPtr artifact_;
  std::string last_source_;
  std::shared_ptr<const text::ChatTemplate> last_;
};

/// The context that --chat, --tools and --kwargs describe, as transformers builds it.
Result<Json> chat_context(const Flags& flags) {
  std::string source = flags.chat;
  PLIMSOLL_TRY(Json chat, source.empty() ? parse_json(read_all(std::cin), "stdin") : read_json_file(source));
  Json context = Json::object({{"messages", Json()}, {"tools", Json()}, {"documents", Json()}});
  if (chat.is_array())
    context.set("messages", std::move(chat));
  else
    for (const auto& [key, value] : chat.members()) context.set(key, value);
  if (!flags.tools.empty()) {
    PLIMSOLL_TRY(Json tools, read_json_file(flags.tools));
    context.set("tools", std::move(tools));
  }
  if (!context.contains("add_generation_prompt"))
    context.set("add_generation_prompt", !flags.no_generation_prompt && !flags.continue_final_message);
  if (flags.continue_final_message) context.set("continue_final_message", true);
  if (!flags.kwargs.empty()) {
    PLIMSOLL_TRY(const Json kwargs, parse_json(flags.kwargs, "--kwargs"));
    if (!kwargs.is_object()) return fail(ErrorCode::kUsage, "--kwargs takes a JSON object", "--kwargs");
    for (const auto& [key, value] : kwargs.members()) context.set(key, value);
  }
  return context;
}

Error to_error(const Failure& failure) {
  const ErrorCode code = failure.type == "LimitError" ? ErrorCode::kUnsupported : ErrorCode::kMalformed;
  return {code, failure.type + ": " + failure.message,
          failure.line > 0 ? "chat template: line " + std::to_string(failure.line) : "", ""};
}

/// Runs every line of stdin; a failed line gives its error and the work goes on.
template <class Work>
int run_lines(const Work& work) {
  bool all_done = true;
  std::string line;
  while (std::getline(std::cin, line)) {
    const auto json = parse_json(line, "line");
    Answer answer = !json               ? Answer(failure("ValueError", json.error().message))
                    : json->is_object() ? work(*json)
                                        : Answer(failure("ValueError", "the line holds no JSON object"));
    all_done = all_done && answer.has_value();
    std::cout << dump(answer ? *answer : to_json(answer.error())) << std::endl;
  }
  return all_done ? 0 : 1;
}

int print(const Flags& flags, const char* schema, const Json& answer, const std::string& text) {
  std::string out = text;
  if (flags.common.is_json()) {
    Json document = Json::object({{"schema", schema}});
    for (const auto& [key, value] : answer.members()) document.set(key, value);
    out = dump_pretty(document);
  }
  const Status written = write_output(flags.common, out);
  return written ? 0 : report_error(flags.common, written.error());
}

std::string ids_line(const Json& ids) {
  std::string out;
  for (const Json& id : ids.items()) out += (out.empty() ? "" : ",") + dump(id);
  return out + "\n";
}

int run_encode(const Flags& flags) {
  auto artifact = artifact::open(flags.model);
  if (!artifact) return report_error(flags.common, artifact.error());
  auto tokenizer = text::load_tokenizer(**artifact);
  if (!tokenizer) return report_error(flags.common, tokenizer.error());
  if (flags.jsonl) return run_lines([&](const Json& line) { return encode_line(**tokenizer, flags, line); });
  auto text = input_text(flags);
  if (!text) return report_error(flags.common, text.error());
  const Json answer = encoded(**tokenizer, *text, {!flags.no_special, !flags.no_parse_special});
  return print(flags, "plimsoll.tokens/1", answer, ids_line(answer["ids"]));
}

int run_decode(const Flags& flags) {
  auto artifact = artifact::open(flags.model);
  if (!artifact) return report_error(flags.common, artifact.error());
  auto tokenizer = text::load_tokenizer(**artifact);
  if (!tokenizer) return report_error(flags.common, tokenizer.error());
  if (flags.jsonl) return run_lines([&](const Json& line) { return decode_line(*tokenizer, flags, line); });
  std::string given = flags.ids.empty() ? read_all(std::cin) : flags.ids;
  std::replace_if(given.begin(), given.end(), [](char c) { return c == ',' || c == '[' || c == ']'; }, ' ');
  Json ids = Json::array();
  std::size_t at = 0;
  while ((at = given.find_first_not_of(" \t\r\n", at)) != std::string::npos) {
    const std::size_t end = std::min(given.find_first_of(" \t\r\n", at), given.size());
    std::int64_t id = 0;
    const auto [stop, error] = std::from_chars(given.data() + at, given.data() + end, id);
    if (error != std::errc{} || stop != given.data() + end)
      return report_error(flags.common, {ErrorCode::kUsage, "not a token id: " + given.substr(at, end - at),
                                         "--ids", "give ids as 1,2,3"});
    ids.push_back(id);
    at = end;
  }
  const Answer answer = decode_line(*tokenizer, flags, Json::object({{"ids", std::move(ids)}}));
  if (!answer) return report_error(flags.common, to_error(answer.error()));
  return print(flags, "plimsoll.tokens/1", *answer, *(*answer)["text"].as_string() + "\n");
}

int run_render(const Flags& flags) {
  ArtifactPtr artifact;
  if (!flags.model.empty()) {
    auto opened = artifact::open(flags.model);
    if (!opened) return report_error(flags.common, opened.error());
    artifact = std::move(*opened);
  } else if (flags.chat_template.empty()) {
    return report_error(flags.common,
                        {ErrorCode::kUsage, "render needs MODEL or --chat-template FILE", "", ""});
  }
  Renderer renderer(flags, std::move(artifact));
  if (flags.jsonl) return run_lines([&](const Json& line) { return renderer.render(line); });
  auto context = chat_context(flags);
  if (!context) return report_error(flags.common, context.error());
  const Answer answer = renderer.render(*context);
  if (!answer) return report_error(flags.common, to_error(answer.error()));
  return print(flags, "plimsoll.tokens/1", *answer, *(*answer)["text"].as_string());
}

std::size_t num_content_tokens(const text::Tokenizer& tokenizer, const Json& messages) {
  std::size_t tokens = 0;
  for (const Json& message : messages.items())
    if (const std::string* content = message["content"].as_string())
      tokens += tokenizer.encode(*content, {false, false}).size();
  return tokens;
}

int run_count(const Flags& flags) {
  auto artifact = artifact::open(flags.model);
  if (!artifact) return report_error(flags.common, artifact.error());
  auto tokenizer = text::load_tokenizer(**artifact);
  if (!tokenizer) return report_error(flags.common, tokenizer.error());
  std::size_t tokens = 0, content_tokens = 0;
  if (!flags.chat.empty()) {
    auto context = chat_context(flags);
    if (!context) return report_error(flags.common, context.error());
    Renderer renderer(flags, *artifact);
    const Answer rendered = renderer.render(*context);
    if (!rendered) return report_error(flags.common, to_error(rendered.error()));
    // The template writes BOS itself, so none is added.
    tokens = (*tokenizer)->encode(*(*rendered)["text"].as_string(), {false, true}).size();
    content_tokens = num_content_tokens(**tokenizer, (*context)["messages"]);
  } else {
    auto text = input_text(flags);
    if (!text) return report_error(flags.common, text.error());
    tokens = (*tokenizer)->encode(*text, {!flags.no_special, !flags.no_parse_special}).size();
    content_tokens = (*tokenizer)->encode(*text, {false, !flags.no_parse_special}).size();
  }
  const std::size_t overhead = tokens - std::min(tokens, content_tokens);
  std::optional<std::int64_t> context_tokens;
  if (flags.max_model_len > 0) {
    context_tokens = flags.max_model_len;
  } else if (auto spec = model::read_spec(**artifact)) {
    const auto longest = std::max(spec->extended_context_tokens, spec->native_context_tokens);
    if (longest > 0) context_tokens = longest;
  }
  std::optional<std::int64_t> room;
  if (context_tokens)
    room = std::max<std::int64_t>(
        0, *context_tokens - flags.reserved_output - static_cast<std::int64_t>(overhead));
  const Json answer = Json::object({{"tokens", tokens},
                                    {"template_overhead_tokens", overhead},
                                    {"max_model_len", context_tokens},
                                    {"max_input_tokens", room}});
  std::string text;
  for (const auto& [key, value] : answer.members()) text += key + " " + dump(value) + "\n";
  return print(flags, "plimsoll.tokens/1", answer, text);
}

CLI::App* add_command(CLI::App& tokens, const std::shared_ptr<Flags>& flags, const char* name,
                      const char* help, const char* examples) {
  CLI::App* command = tokens.add_subcommand(name, help);
  add_common_flags(*command, flags->common);
  auto* model = command->add_option("MODEL", flags->model, "folder, .gguf file or tokenizer.json");
  if (std::string_view(name) != "render") model->required();
  command->footer(std::string("Examples:\n") + examples);
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
  CLI::App* decode = add_command(*tokens, flags, "decode", "token ids to text",
                                 "  plimsoll tokens decode ./model --ids 504,3980 --skip-special");
  decode->add_option("--ids", flags->ids, "ids as 1,2,3 (default: stdin)");
  decode->add_flag("--skip-special", flags->skip_special, "leave special tokens out");
  CLI::App* render = add_command(*tokens, flags, "render", "a conversation to the prompt the model sees",
                                 "  plimsoll tokens render ./model --chat chat.json\n"
                                 "  plimsoll tokens render --chat-template t.jinja --jsonl < lines.jsonl");
  add_chat_flags(*render, *flags);
  CLI::App* count =
      add_command(*tokens, flags, "count", "tokens of a text or conversation, and the room left",
                  "  plimsoll tokens count ./model --chat chat.json --reserve-output 512");
  add_text_flags(*count, *flags);
  add_chat_flags(*count, *flags);
  count->add_option("--max-model-len", flags->max_model_len, "context length instead of the model's");
  count->add_option("--reserve-output", flags->reserved_output, "tokens kept free for the answer")
      ->check(CLI::NonNegativeNumber);
  for (CLI::App* command : {encode, decode, render})
    command->add_flag("--jsonl", flags->jsonl, "one JSON object per line on stdin and stdout");
  return {tokens, {flags, &flags->common}, [=] {
            for (const CLI::App* command : {encode, count})
              flags->has_text = flags->has_text || command->count("--text") > 0;
            if (encode->parsed()) return run_encode(*flags);
            if (decode->parsed()) return run_decode(*flags);
            return render->parsed() ? run_render(*flags) : run_count(*flags);
          }};
}

}  // namespace plimsoll::cli
