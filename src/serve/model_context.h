// SPDX-License-Identifier: Apache-2.0
// What must be known of the served model to read a request: names, limits, tokenizer, template, the author's
// sampling defaults. Immutable once built; shared by all threads.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "engine/engine.h"
#include "serve/api_error.h"
#include "serve/fields.h"
#include "text/text.h"

namespace plimsoll::serve {

using engine::TokenId;

/// What a request gets that does not say otherwise; from generation_config.json, as vLLM reads it.
struct SamplingDefaults {
  double temperature = 1.0;
  double top_p = 1.0;
  int top_k = 0;
  double min_p = 0.0;
  double presence_penalty = 0.0;
  double frequency_penalty = 0.0;
  double repetition_penalty = 1.0;
  bool skip_special_tokens = true;
  std::optional<std::int64_t> max_new_tokens;  // of chats that ask for no length
  bool caps_max_tokens = false;                // max_new_tokens is a limit for every request instead
  std::vector<TokenId> stop_ids;               // eos_token_id of a file that is not the model's own
};

/// Of a model that gives embeddings.
struct EmbeddingFacts {
  std::int64_t dimensions = 0;
  bool is_normalized = true;
  bool has_shorter_ones = false;                      // requests may ask for a leading part
  std::vector<std::int64_t> shorter_dimensions = {};  // of these lengths; empty: of any
  bool truncates_left = false;                        // the tokenizer keeps the end of what is too long
};

struct ModelContext {
  std::vector<std::string> names;  // the first is the one that answers carry
  std::string root;                // the path it was loaded from
  std::int64_t max_model_len = 0;
  std::int64_t vocab_size = 0;                              // of the logits
  std::shared_ptr<const text::Tokenizer> tokenizer;         // null: token ids only
  std::shared_ptr<const text::ChatTemplate> chat_template;  // null: no chat
  std::shared_ptr<const text::ChatTemplate> tool_template;  // for requests with tools; null: the same
  std::string bos_token, eos_token;                         // as templates print them; "" when there is none
  std::string template_problem;                             // why there is no template
  std::string tool_template_problem;                        // why the one for tools cannot be used
  std::optional<EmbeddingFacts> embedding;                  // gives embeddings, and generates nothing
  SamplingDefaults defaults;
  std::vector<TokenId> stop_ids;  // end a turn unless ignore_eos
};

/// What `fields` say in vLLM's ranges (SamplingParams, 0.33.0), and `values` where they say nothing.
SamplingDefaults read_sampling_values(Fields& fields, SamplingDefaults values);

/// `source`: auto (the model's own generation_config.json), vllm (none), or a folder that holds one.
/// Errors: kMalformed when the folder has none or a value is out of its range.
Result<SamplingDefaults> read_sampling_defaults(const artifact::Artifact& artifact,
                                                const std::string& source);

/// Ids that end a turn: the tokenizer's, or those of config and generation_config where there is no
/// tokenizer.
std::vector<TokenId> read_stop_ids(const artifact::Artifact& artifact, const text::Tokenizer* tokenizer);

/// Refuses a model name that is not served; an empty one means the served model.
/// Errors: 404 model_not_found.
std::optional<ApiError> check_model_name(const ModelContext& context, const std::string& name);

}  // namespace plimsoll::serve
