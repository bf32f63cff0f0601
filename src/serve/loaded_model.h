// SPDX-License-Identifier: Apache-2.0
// A model folder or file made ready to answer: artifact, engine, tokenizer, template, defaults. `serve` and
// `generate` load the same way. Owns all of it; the engine belongs to one thread, the context to all.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "engine/engine.h"
#include "serve/model_context.h"

namespace plimsoll::serve {

struct LoadOptions {
  std::string model;                            // MODEL as the command line takes it
  std::string lock;                             // a lock record that it is held against
  std::vector<std::string> served_model_names;  // default: `model`
  std::string generation_config = "auto";       // auto, vllm, or a folder
  std::string chat_template;                    // file that replaces the model's own
  engine::EngineOptions engine;
  /// The config of a known id (facts::catalogue_config), for measuring, which reads no weights.
  std::function<std::optional<Json>(std::string_view id)> catalogue;
};

struct LoadedModel {
  std::shared_ptr<const artifact::Artifact> artifact;
  model::ModelSpec spec;
  std::unique_ptr<engine::Engine> engine;
  ModelContext context;
  double load_seconds = 0.0;
};

/// Errors: those of artifact::open, its first error finding, model::read_spec, text::load_tokenizer and
///         engine::Engine::load; kMalformed when --chat-template cannot be read or parsed, and when a file of
///         the weights became shorter meanwhile.
Result<LoadedModel> load_model(const LoadOptions& options);
/// The same of an artifact that is open; options.model is what it was asked for as.
Result<LoadedModel> load_model(std::shared_ptr<const artifact::Artifact> artifact,
                               const LoadOptions& options);

/// Errors: kUnsupported for a model that gives embeddings only, which serve answers at /v1/embeddings.
Status check_generates(const model::ModelSpec& spec);

/// What a start-up log says of memory, in vLLM's words, and the exact line that `verify` prefers.
/// Source: docs/formats/openai_http.md, "Start-up lines".
std::vector<std::string> startup_lines(const engine::MemoryReport& memory, double load_seconds);

}  // namespace plimsoll::serve
