// SPDX-License-Identifier: Apache-2.0
#include "serve/loaded_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "base/cores.h"
#include "base/log.h"
#include "base/mapped_file.h"
#include "text/chat.h"

namespace plimsoll::serve {
namespace {

using Clock = std::chrono::steady_clock;
using TemplatePtr = std::shared_ptr<const text::ChatTemplate>;

/// Parses one template; what is wrong with it comes out in `problem`.
TemplatePtr parsed_template(const std::string& source, std::string& problem) {
  auto parsed = text::ChatTemplate::parse(source);
  if (parsed) return std::move(*parsed);
  const text::TemplateError& error = parsed.error();
  const std::string place = text::place_in_template(error);
  problem = fmt::format("the chat template cannot be read: {}: {}{}", error.type, error.message,
                        place.empty() ? "" : " (" + place + ")");
  log_warning(problem);
  return nullptr;
}

Status load_templates(const LoadOptions& options, const artifact::Artifact& artifact, ModelContext& context) {
  if (!options.chat_template.empty()) {
    PLIMSOLL_TRY(const std::string source, read_file(options.chat_template));
    context.chat_template = parsed_template(source, context.template_problem);
    if (context.chat_template) return {};
    return fail(ErrorCode::kMalformed, context.template_problem, options.chat_template,
                "correct the template");
  }
  const auto source = text::choose_chat_template(artifact, {}, false);
  if (source) context.chat_template = parsed_template(*source, context.template_problem);
  const auto for_tools = text::choose_chat_template(artifact, {}, true);
  if (for_tools && for_tools != source)
    context.tool_template = parsed_template(*for_tools, context.tool_template_problem);
  return {};
}

std::string without_trailing_slashes(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return path;
}

std::optional<EmbeddingFacts> embedding_facts(const LoadedModel& loaded) {
  const auto& pooling = loaded.spec.pooling;
  if (!pooling) return std::nullopt;
  return EmbeddingFacts{.dimensions = loaded.spec.hidden_size,
                        .is_normalized = pooling->is_normalized,
                        .has_shorter_ones = pooling->has_shorter_ones,
                        .shorter_dimensions = pooling->dimensions,
                        .truncates_left = loaded.artifact->json_file(
                                              "tokenizer_config.json")["truncation_side"] == Json("left")};
}

}  // namespace

Result<LoadedModel> load_model(const LoadOptions& options) {
  const auto begin = Clock::now();
  PLIMSOLL_TRY(auto artifact,
               artifact::open(options.model, {.need = artifact::Need::kTensors, .lock = options.lock}));
  PLIMSOLL_TRY(LoadedModel loaded, load_model(std::move(artifact), options));
  loaded.load_seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  return loaded;
}

Result<LoadedModel> load_model(std::shared_ptr<const artifact::Artifact> artifact,
                               const LoadOptions& options) {
  const auto begin = Clock::now();
  LoadedModel loaded;
  loaded.artifact = std::move(artifact);
  if (auto error = artifact::first_error(loaded.artifact->findings())) return fail(std::move(*error));
  PLIMSOLL_TRY(loaded.spec, model::read_spec(*loaded.artifact));
  ModelContext& context = loaded.context;
  if (text::has_tokenizer(*loaded.artifact)) {
    PLIMSOLL_TRY(context.tokenizer, text::load_tokenizer(*loaded.artifact));
    PLIMSOLL_TRY_VOID(load_templates(options, *loaded.artifact, context));
    context.bos_token = text::special_token_text(*loaded.artifact, "bos_token");
    context.eos_token = text::special_token_text(*loaded.artifact, "eos_token");
  }
  PLIMSOLL_TRY(context.defaults, read_sampling_defaults(*loaded.artifact, options.generation_config));
  PLIMSOLL_TRY(loaded.engine, engine::Engine::load(loaded.artifact, loaded.spec, options.engine));
  // The engine keeps much of what it read: no step would meet the new end of the file.
  if (auto error = loaded.engine->cut_error()) return fail(std::move(*error));
  const artifact::HubFacts* hub = loaded.artifact->hub();
  context.root = hub ? hub->id : without_trailing_slashes(options.model);
  context.names = options.served_model_names;
  if (context.names.empty()) context.names.push_back(context.root);
  context.max_model_len = loaded.engine->memory().max_model_len.value;
  context.vocab_size = loaded.engine->vocab_size();
  context.embedding = embedding_facts(loaded);
  context.stop_ids = read_stop_ids(*loaded.artifact, context.tokenizer.get());
  for (const TokenId id : context.defaults.stop_ids)
    if (std::find(context.stop_ids.begin(), context.stop_ids.end(), id) == context.stop_ids.end())
      context.stop_ids.push_back(id);
  // A stop id beyond the logits can never be chosen, and the engine refuses it.
  std::erase_if(context.stop_ids, [&](TokenId id) { return id < 0 || id >= context.vocab_size; });
  loaded.load_seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  return loaded;
}

Status check_generates(const model::ModelSpec& spec) {
  if (!spec.pooling) return {};
  return fail(ErrorCode::kUnsupported,
              fmt::format("{} gives embeddings of texts and generates none", spec.architecture), "MODEL",
              "serve it and ask /v1/embeddings, or take a model that generates text");
}

std::vector<std::string> startup_lines(const engine::MemoryReport& memory, double load_seconds) {
  const auto gib = [](Bytes bytes) { return static_cast<double>(bytes.value) / static_cast<double>(kGiB); };
  const Json exact = Json::object({{"weights_bytes", memory.weights.value},
                                   {"kv_cache_bytes", memory.kv_cache.value},
                                   {"kv_bytes_per_token", memory.kv_bytes_per_token.value},
                                   {"num_blocks", memory.num_blocks.value},
                                   {"block_size", memory.block_size},
                                   {"kv_tokens", memory.kv_tokens.value}});
  return {
      fmt::format("Model loading took {:.2f} GiB memory and {:.6f} seconds", gib(memory.weights),
                  load_seconds),
      fmt::format("Using {} data type to store kv cache.", memory.kv_cache_dtype),
      fmt::format("Available KV cache memory: {:.2f} GiB", gib(memory.kv_cache)),
      memory.capacity_line,
      "plimsoll memory: " + dump(exact),
      fmt::format("plimsoll threads: {} ({})", memory.threads, describe(read_cores())),
  };
}

}  // namespace plimsoll::serve
