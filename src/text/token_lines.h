// SPDX-License-Identifier: Apache-2.0
// What does one line of `tokens --jsonl` answer, and how much of a context is left for the input? JSON in,
// JSON out: ids with their pieces, text of ids at once or as a stream gives it, counts. Knows no file and no
// flag. Pure functions; any thread may call.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string_view>

#include "base/json.h"
#include "base/result.h"
#include "text/prompt_guard.h"
#include "text/text.h"

namespace plimsoll::text {

/// A line's answer, or why it could not be done: the class that the reference would raise.
using LineAnswer = tl::expected<Json, TemplateError>;

/// {"ids":[...],"pieces":[...]}; bytes of a piece that are not UTF-8 are repaired. With `wants_offsets` also
/// "offsets":[[begin,end],...], the characters (code points) of the text that each id stands for.
Json encoded(const Tokenizer& tokenizer, std::string_view text, const EncodeOptions& options,
             bool wants_offsets = false);

/// Answers {"text" or "hex", "add_special_tokens", "parse_special", "offsets"}; `defaults` where the line
/// says nothing. Errors: ValueError when it holds neither text nor pairs of hexadecimal digits.
LineAnswer encode_line(const Tokenizer& tokenizer, const Json& line, const EncodeOptions& defaults,
                       bool wants_offsets = false);

/// Answers {"ids", "skip_special_tokens", "stream"} with {"text"}; a stream also with its "chunks" and
/// "flush". Errors: ValueError for what is no array of token ids.
LineAnswer decode_line(const std::shared_ptr<const Tokenizer>& tokenizer, const Json& line,
                       bool skip_special);

/// Reads one line of JSON and lets `work` answer the object in it.
/// Errors: those of `work`; ValueError when the line holds no JSON object.
LineAnswer answer_line(std::string_view line, const std::function<LineAnswer(const Json&)>& work);

/// The line that stands for an answer: itself, or {"error":{"class","message","line"}}.
Json line_json(const LineAnswer& answer);

/// The same failure as an Error for a verb that answers once: kUnsupported for limits, else kMalformed.
Error line_error(const TemplateError& error);

/// Reads "1,2,3", "[1, 2, 3]" or "1 2 3" as an array. Errors: kUsage naming the word that is no id.
Result<Json> parse_ids(std::string_view text);

/// How many tokens an input has, and how many of them no word of the user's caused.
struct TokenCount {
  Tokens tokens;
  Tokens template_overhead;  // of template or BOS and EOS
};
TokenCount count_text(const Tokenizer& tokenizer, std::string_view text, const EncodeOptions& options);
/// `prompt` is what the template made of the guarded `messages`; it writes BOS itself, so none is added.
TokenCount count_chat(const Tokenizer& tokenizer, const PromptGuard::Prompt& prompt, const Json& messages);

/// Tokens that content may still have: the context without the template's and those kept for the answer;
/// never below 0.
Tokens input_room(const TokenCount& count, Tokens max_model_len, Tokens reserved_output);

}  // namespace plimsoll::text
