// SPDX-License-Identifier: Apache-2.0
// Any bytes as the body of every endpoint: reading never crashes, and what is taken keeps its promises (a
// prompt within the context, ids within the vocabulary, a field named in a refusal's place).
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "serve/embeddings.h"
#include "serve/request.h"

namespace {

using namespace plimsoll;

const serve::ModelContext& context() {
  static const serve::ModelContext instance = [] {
    serve::ModelContext made;
    made.names = {"m"};
    made.max_model_len = 64;
    made.vocab_size = 100;
    made.stop_ids = {2};
    made.embedding = serve::EmbeddingFacts{.dimensions = 8, .has_shorter_ones = true};
    return made;
  }();
  return instance;
}

void check(const serve::GenerationRequest& request) {
  if (request.prompts.size() != request.max_tokens.size()) std::abort();
  for (std::size_t i = 0; i < request.prompts.size(); ++i) {
    const auto& ids = request.prompts[i].ids;
    if (ids.empty() || static_cast<std::int64_t>(ids.size()) + request.max_tokens[i] > 64) std::abort();
    for (const auto id : ids)
      if (id < 0 || id >= 100) std::abort();
  }
  for (const auto& [id, bias] : request.sampling.logit_bias)
    if (id < 0 || id >= 100 || !(bias >= -100 && bias <= 100)) std::abort();
  if (request.n < 1 || request.sampling.temperature < 0) std::abort();
}

void check(const serve::EmbeddingRequest& request) {
  if (request.inputs.empty() || request.params.dimensions < 0 || request.params.dimensions > 8) std::abort();
  for (const auto& ids : request.inputs) {
    if (ids.empty() || ids.size() > 64) std::abort();
    for (const auto id : ids)
      if (id < 0 || id >= 100) std::abort();
  }
}

template <class Request>
void check_answer(const serve::ApiResult<Request>& request) {
  if (request)
    check(*request);
  else if (request.error().status != 400 && request.error().status != 404)
    std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto body = serve::read_body(std::string_view(reinterpret_cast<const char*>(data), size));
  if (!body) return body.error().status == 400 ? 0 : (std::abort(), 0);
  for (const auto endpoint : {serve::Endpoint::kCompletion, serve::Endpoint::kChat})
    for (const auto caller : {serve::Caller::kHttp, serve::Caller::kOffline})
      check_answer(serve::read_request(endpoint, *body, context(), caller));
  check_answer(serve::read_embedding_request(*body, context()));
  return 0;
}
