// SPDX-License-Identifier: Apache-2.0
// Text <-> token ids and chat templates, exact to the reference implementations. Knows no model and no
// scheduler. Tokenizer and ChatTemplate are immutable after loading: any number of threads may use one. A
// StreamDecoder is not shared.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "artifact/artifact.h"
#include "base/json.h"
#include "base/result.h"

namespace plimsoll::text {

using TokenId = std::int32_t;

struct EncodeOptions {
  bool add_special_tokens = true;  // BOS/EOS as the tokenizer's post-processor says
  bool parse_special = true;       // false: special strings inside the text are plain text
  /// Ascending places of the text, in bytes, that no special token may lie across (see prompt_guard.h).
  std::span<const std::size_t> barriers = {};
};

/// Bytes [begin, end) of a text.
struct Span {
  std::size_t begin = 0;
  std::size_t end = 0;
  bool operator==(const Span&) const = default;
};

/// Ids and where they come from.
struct Encoding {
  std::vector<TokenId> ids;
  /// One per id: the bytes of the text (as repaired, if it was not UTF-8) that it stands for. Ids that the
  /// tokenizer adds of itself have empty spans.
  std::vector<Span> spans;
};

class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  /// Ids of `utf8`; bytes that are not UTF-8 are replaced as Python's errors="replace" does.
  virtual std::vector<TokenId> encode(std::string_view utf8, const EncodeOptions& options = {}) const = 0;
  /// The same ids with their places; slower.
  virtual Encoding encode_with_spans(std::string_view utf8, const EncodeOptions& options = {}) const = 0;
  /// Text of ids; incomplete UTF-8 becomes U+FFFD; ids outside the vocabulary are skipped.
  virtual std::string decode(std::span<const TokenId> ids, bool skip_special_tokens) const = 0;
  /// True when the text of ids is nothing but their joined bytes, whatever stands beside an id.
  virtual bool decodes_by_bytes() const = 0;
  /// The raw bytes one id stands for ("" outside the vocabulary): what streaming and logprobs need.
  virtual std::string token_bytes(TokenId id) const = 0;
  /// The vocabulary's own spelling of an id ("Ġis"), or nothing.
  virtual std::optional<std::string> token_text(TokenId id) const = 0;
  virtual std::optional<TokenId> id_of(std::string_view token) const = 0;

  /// Ascending places at which a text must be broken so that no special token can be found in it, nor across
  /// its ends (blanks there aside) together with other text.
  virtual std::vector<std::size_t> special_breaks(std::string_view utf8) const = 0;

  virtual std::int64_t vocab_size() const = 0;  // highest id + 1, added tokens included
  virtual bool is_special(TokenId id) const = 0;
  virtual std::optional<TokenId> bos() const = 0;
  virtual std::optional<TokenId> eos() const = 0;
  /// Ids that end a turn: union of config, generation_config, tokenizer and GGUF keys (eos, eot).
  virtual const std::vector<TokenId>& stop_ids() const = 0;
};

/// True when the artifact carries a file or keys that load_tokenizer would read.
bool has_tokenizer(const artifact::Artifact& artifact);

/// Loads the tokenizer that the artifact carries: GGUF metadata, or the first of tokenizer.json, tekken.json,
/// *.tiktoken and SentencePiece's or tiktoken's *.model.
/// Errors: kMalformed with the place; kUnsupported naming the tokenizer kind; kMalformed "no tokenizer" when
/// there is none.
Result<std::shared_ptr<const Tokenizer>> load_tokenizer(const artifact::Artifact& artifact);

/// Turns a stream of ids into text, holding back bytes that do not yet form whole characters.
class StreamDecoder {
 public:
  StreamDecoder(std::shared_ptr<const Tokenizer> tokenizer, bool skip_special_tokens);
  ~StreamDecoder();
  StreamDecoder(StreamDecoder&&) noexcept;
  StreamDecoder& operator=(StreamDecoder&&) noexcept;
  /// New text that `id` completes, or nothing while it is held back.
  std::optional<std::string> push(TokenId id);
  /// What was held back, repaired with U+FFFD.
  std::string flush();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Why a template could not be parsed or rendered: the class jinja2 raises, its message, and the place.
struct TemplateError {
  std::string type;  // TemplateError UndefinedError TypeError SecurityError TemplateRuntimeError
                     // TemplateSyntaxError TemplateAssertionError (unknown filter or test) LimitError
  std::string message;
  int line = 0;    // as jinja2 counts it: of the statement
  int column = 0;  // in bytes from 1, of the expression when it begins on that line; 0 when unknown
};

class ChatTemplate {
 public:
  /// Parses once. Errors: TemplateSyntaxError or TemplateAssertionError with its place.
  static tl::expected<std::shared_ptr<const ChatTemplate>, TemplateError> parse(std::string_view source);
  virtual ~ChatTemplate() = default;
  /// Renders with `context` as the template's variables (messages, tools, add_generation_prompt, bos_token,
  /// ...). `now` (ISO 8601, e.g. 2026-01-15T09:30:00) fixes strftime_now; the clock when empty.
  virtual tl::expected<std::string, TemplateError> render(const Json& context,
                                                          std::string_view now = {}) const = 0;
  /// True when the template iterates over content parts ("openai" format); false when it takes strings only.
  virtual bool takes_content_parts() const = 0;
};

/// Source text of the template that the artifact carries (chat_template.jinja, tokenizer_config.json, GGUF
/// key), `name` choosing among several; nothing when there is none.
std::optional<std::string> chat_template_source(const artifact::Artifact& artifact,
                                                std::string_view name = {});

}  // namespace plimsoll::text
