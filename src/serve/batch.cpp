// SPDX-License-Identifier: Apache-2.0
#include "serve/batch.h"

#include <fmt/format.h>

#include <atomic>
#include <condition_variable>
#include <deque>
#include <filesystem>
#include <fstream>
#include <istream>
#include <limits>
#include <mutex>
#include <optional>
#include <ostream>
#include <unordered_map>
#include <utility>

#include "serve/routes.h"

namespace plimsoll::serve {
namespace {

constexpr JsonReadOptions kLineOptions{.max_depth = 100, .allow_bare_constants = false};

/// Answers on their way from the engine's thread to the one that writes.
class Answers {
 public:
  struct Answer {
    std::size_t request = 0;
    http::Response response;
  };
  void put(Answer answer) {
    const std::lock_guard lock(mutex_);
    answers_.push_back(std::move(answer));
    arrived_.notify_one();
  }
  Answer take() {
    std::unique_lock lock(mutex_);
    arrived_.wait(lock, [&] { return !answers_.empty(); });
    Answer answer = std::move(answers_.front());
    answers_.pop_front();
    return answer;
  }

 private:
  std::mutex mutex_;
  std::condition_variable arrived_;
  std::deque<Answer> answers_;
};

/// Takes a route's answer in the place of a connection.
class BatchResponder : public http::Responder {
 public:
  BatchResponder(Answers& answers, std::size_t request) : answers_(answers), request_(request) {}
  ~BatchResponder() override {
    if (!is_answered_) send({.status = 500, .headers = {}, .body = {}});
  }
  void send(http::Response response) override {
    if (!is_answered_.exchange(true)) answers_.put({request_, std::move(response)});
  }
  // A body that asks for a stream was refused before.
  void begin_stream(int, http::Headers) override {}
  void write(std::string) override {}
  void finish() override {}
  bool is_disconnected() const override { return false; }
  void on_disconnect(std::function<void()>) override {}

 private:
  Answers& answers_;
  std::size_t request_;
  std::atomic<bool> is_answered_ = false;
};

Json custom_id_json(const std::string& custom_id) {
  return custom_id.empty() ? Json() : Json(custom_id);
}

Json error_json(std::string code, std::string message, std::int64_t line) {
  return Json::object({{"code", std::move(code)}, {"message", std::move(message)}, {"line", line}});
}

/// The line of a request that never became one.
Json refusal(const std::string& custom_id, Json error) {
  return Json::object({{"id", fmt::format("batch_req_line_{}", error["line"].as_integer().value_or(0))},
                       {"custom_id", custom_id_json(custom_id)},
                       {"response", nullptr},
                       {"error", std::move(error)}});
}

/// The line of a request that the routes answered, well or not. `model`: as requests may call it.
Json answer_line(const std::string& custom_id, std::int64_t line, const http::Response& response,
                 const std::string& model) {
  const std::string request_id(http::header(response.headers, "x-request-id"));
  Json body;
  if (auto parsed = parse_json(response.body, "answer")) body = std::move(*parsed);
  Json error;
  if (response.status != 200) {
    const std::string* code = body.at_pointer("/error/code").as_string();
    const std::string* message = body.at_pointer("/error/message").as_string();
    error = error_json(code ? *code : fmt::format("http_{}", response.status),
                       message ? *message : "the request could not be answered", line);
    if (code && *code == "model_not_found")
      error.set("message", fmt::format("{}; here it is called `{}`: leave the name out, or start with "
                                       "--served-model-name",
                                       *error["message"].as_string(), model));
  }
  return Json::object({{"id", "batch_req_" + request_id},
                       {"custom_id", custom_id},
                       {"response", Json::object({{"status_code", response.status},
                                                  {"request_id", request_id},
                                                  {"body", std::move(body)}})},
                       {"error", std::move(error)}});
}

bool is_failure(const Json& answer) {
  return !answer["error"].is_null() || answer.at_pointer("/response/status_code") != Json(200);
}

/// What is wrong with a line whose JSON was read; null when it is a request.
Json wrong_with(const Json& line, std::int64_t number) {
  const auto wrong = [&](std::string code, const std::string& message) {
    return error_json(std::move(code), message, number);
  };
  if (!line.is_object()) return wrong("invalid_json_line", "the line is no JSON object");
  for (const char* name : {"custom_id", "method", "url"}) {
    const std::string* value = line[name].as_string();
    if (!value || value->empty())
      return wrong("missing_required_parameter", fmt::format("{} must be a string that is not empty", name));
  }
  const std::string& method = *line["method"].as_string();
  if (method != "POST") return wrong("invalid_method", fmt::format("method must be POST, got {}", method));
  if (!line["body"].is_object()) return wrong("missing_required_parameter", "body must be an object");
  if (line["body"]["stream"] == Json(true))
    return wrong("invalid_request", "stream is not for a batch: each request is answered whole");
  return {};
}

/// How every line of answers begins.
constexpr std::string_view kAnswerStart = R"({"id":"batch_req_)";

// What stands behind the last whole line may be cut off only if it is the beginning of an answer.
Status check_tail(const std::string& output, std::uintmax_t begin, std::int64_t number) {
  std::ifstream in(output, std::ios::binary);
  in.seekg(static_cast<std::streamoff>(begin));
  std::string tail(kAnswerStart.size(), '\0');
  in.read(tail.data(), static_cast<std::streamsize>(tail.size()));
  tail.resize(static_cast<std::size_t>(in.gcount()));
  if (kAnswerStart.starts_with(tail)) return {};
  return fail(ErrorCode::kMalformed,
              "the file for the answers ends in something that is no answer of a batch",
              fmt::format("{}: line {}", output, number), "name another file, or remove the line");
}

/// What a file of answers holds. The values say whether the request failed.
struct KnownAnswers {
  std::unordered_map<std::string, bool> by_id;
  std::unordered_map<std::int64_t, bool> by_line;  // of those without custom_id
  std::uintmax_t whole_bytes = 0;                  // up to the end of the last whole line
  std::int64_t num_lines = 0;

  std::optional<bool> of(const std::string& custom_id, std::int64_t line) const {
    const auto find = [](const auto& answers, const auto& key) {
      const auto known = answers.find(key);
      return known == answers.end() ? std::nullopt : std::optional(known->second);
    };
    return custom_id.empty() ? find(by_line, line) : find(by_id, custom_id);
  }
};

Result<KnownAnswers> read_answers(const std::string& output) {
  KnownAnswers known;
  std::error_code problem;
  if (!std::filesystem::is_regular_file(output, problem)) return known;  // nothing is there, or a pipe
  std::ifstream in(output, std::ios::binary);
  for (std::string text; std::getline(in, text) && !in.eof();) {
    ++known.num_lines;
    const auto answer = parse_json(text, output);
    const bool is_answer = answer && !((*answer)["response"].is_null() && (*answer)["error"].is_null());
    const std::string* custom_id = is_answer ? (*answer)["custom_id"].as_string() : nullptr;
    const auto line = answer ? answer->at_pointer("/error/line").as_integer() : std::nullopt;
    if (!custom_id && !line)
      return fail(ErrorCode::kMalformed, "the file for the answers holds a line that is no answer of a batch",
                  fmt::format("{}: line {}", output, known.num_lines),
                  "name another file, or remove the line");
    if (custom_id)
      known.by_id[*custom_id] = is_failure(*answer);
    else
      known.by_line[*line] = true;
    known.whole_bytes += text.size() + 1;
  }
  return known;
}

Status cut_tail(const std::string& output, const KnownAnswers& known) {
  std::error_code problem;
  if (!std::filesystem::is_regular_file(output, problem)) return {};
  if (std::filesystem::file_size(output, problem) <= known.whole_bytes) return {};
  PLIMSOLL_TRY_VOID(check_tail(output, known.whole_bytes, known.num_lines + 1));
  std::filesystem::resize_file(output, known.whole_bytes, problem);
  if (problem)
    return fail(ErrorCode::kUsage, "the last answer is not whole and cannot be cut off: " + problem.message(),
                output, "check that the file is writable");
  return {};
}

}  // namespace

Batch::Line Batch::read_line(std::string_view text, std::int64_t number) {
  Line line;
  line.number = number;
  const auto parsed = parse_json(text, fmt::format("line {}", number), kLineOptions);
  if (!parsed) {
    line.refusal = error_json("invalid_json_line", parsed.error().describe(), number);
    return line;
  }
  if (const std::string* custom_id = (*parsed)["custom_id"].as_string()) line.custom_id = *custom_id;
  line.refusal = wrong_with(*parsed, number);
  if (!line.refusal.is_null()) return line;
  line.path = *(*parsed)["url"].as_string();
  line.body = dump((*parsed)["body"]);
  return line;
}

Result<Batch> Batch::open(std::istream& requests, const std::string& output) {
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  PLIMSOLL_TRY(const KnownAnswers known, read_answers(output));
  Batch batch;
  std::unordered_map<std::string, std::int64_t> seen;
  std::int64_t number = 0;
  for (std::string text; std::getline(requests, text);) {
    std::string_view rest = text;
    if (++number == 1 && rest.starts_with(kByteOrderMark)) rest.remove_prefix(kByteOrderMark.size());
    if (rest.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    Line line = read_line(rest, number);
    if (!line.custom_id.empty()) {
      const auto [first, is_new] = seen.emplace(line.custom_id, number);
      if (!is_new)
        return fail(
            ErrorCode::kMalformed,
            fmt::format("two requests have the custom_id \"{}\"; their answers could not be told apart",
                        line.custom_id),
            fmt::format("lines {} and {}", first->second, number), "give each request its own");
    }
    ++batch.counts_.requests;
    if (const auto has_failed = known.of(line.custom_id, number))
      batch.counts_.failed += *has_failed ? 1 : 0;
    else
      batch.open_.push_back(std::move(line));
  }
  if (requests.bad()) return fail(ErrorCode::kMalformed, "the requests cannot be read to their end", "");
  batch.counts_.answered = batch.counts_.answered_before = batch.counts_.requests - std::ssize(batch.open_);
  PLIMSOLL_TRY_VOID(cut_tail(output, known));
  return batch;
}

Status Batch::write(const Json& answer, std::ostream& out, const BatchOptions& options) {
  out << dump(answer) + "\n" << std::flush;
  if (!out)
    return fail(ErrorCode::kUsage, "the answers cannot be written", "-o",
                "check that the disk is not full; the same command goes on where it stopped");
  ++counts_.answered;
  counts_.failed += is_failure(answer) ? 1 : 0;
  counts_.completion_tokens +=
      answer.at_pointer("/response/body/usage/completion_tokens").as_integer().value_or(0);
  options.on_answer(counts_);
  return {};
}

Status Batch::run(LoadedModel& model, std::ostream& out, const BatchOptions& options) {
  Answers answers;
  const std::string& name = model.context.names.front();
  Metrics metrics(name, model.engine->memory());
  EngineLoop loop(
      *model.engine, metrics,
      {.max_queue = std::numeric_limits<std::int32_t>::max(), .max_num_seqs = options.max_num_seqs});
  Routes routes(model.context, loop, metrics, {.request_id_headers = true});
  const std::size_t most_under_way = 2 * static_cast<std::size_t>(options.max_num_seqs);
  std::size_t next = 0, under_way = 0;
  while (next < open_.size() || under_way > 0) {
    if (next < open_.size() && under_way < most_under_way) {
      Line& line = open_[next];
      if (line.refusal.is_null()) {
        routes.handle({.method = "POST",
                       .path = line.path,
                       .query = {},
                       .headers = {},
                       .body = std::exchange(line.body, {})},
                      std::make_shared<BatchResponder>(answers, next));
        ++under_way;
      } else {
        PLIMSOLL_TRY_VOID(write(refusal(line.custom_id, std::move(line.refusal)), out, options));
      }
      ++next;
      continue;
    }
    const Answers::Answer answer = answers.take();
    --under_way;
    if (answer.response.status >= 500 && !loop.is_alive())
      return fail(ErrorCode::kInternal, "the engine failed; the requests without an answer are still open",
                  "", "start the same command again");
    const Line& line = open_[answer.request];
    PLIMSOLL_TRY_VOID(write(answer_line(line.custom_id, line.number, answer.response, name), out, options));
  }
  open_.clear();
  return {};
}

}  // namespace plimsoll::serve
