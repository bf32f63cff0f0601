// SPDX-License-Identifier: Apache-2.0
#include "tests/text/real_tokenizers.h"

#include <cstdlib>
#include <map>

#include "artifact/artifact.h"

namespace plimsoll::text {
namespace {

// Family -> what is opened: a folder with tokenizer.json, a GGUF file, a SentencePiece model, tekken.json.
const std::map<std::string, std::string>& paths() {
  static const std::map<std::string, std::string> table = {
      {"bert_bge", "llama_cpp/ggml-vocab-bert-bge.gguf"},
      {"claude", "claude"},
      {"command_r", "llama_cpp/ggml-vocab-command-r.gguf"},
      {"deepseek_v3", "deepseek_v3"},
      {"deepseek_v4", "deepseek_v4"},
      {"falcon", "llama_cpp/ggml-vocab-falcon.gguf"},
      {"gemini", "gemini"},
      {"gemma3", "gemma3"},
      {"gpt2", "llama_cpp/ggml-vocab-gpt-2.gguf"},
      {"gpt35turbo", "gpt35turbo"},
      {"gpt4o", "gpt4o"},
      {"gptoss", "gptoss"},
      {"llama2", "llama_cpp/ggml-vocab-llama-spm.gguf"},
      {"llama3", "llama3"},
      {"llama3_1", "llama3_1"},
      {"mistral7b_v01", "mistral7b_v01"},
      {"mistral_spm_v1", "mistral_spm_v1"},
      {"mistral_spm_v3", "mistral_spm_v3"},
      {"mistral_tekken", "mistral_tekken"},
      {"qwen3", "qwen3"},
      {"qwen35", "llama_cpp/ggml-vocab-qwen35.gguf"},
      {"smollm2", "smollm2/smollm2.gguf"},
      {"starcoder", "llama_cpp/ggml-vocab-starcoder.gguf"},
      {"xlmr_unigram", "llama_cpp/ggml-vocab-nomic-bert-moe.gguf"},
  };
  return table;
}

}  // namespace

bool have_real_tokenizers() {
  const char* folder = std::getenv("PLIMSOLL_TOKENIZERS");
  return folder && *folder;
}

const std::vector<std::string>& family_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    for (const auto& [family, path] : paths()) all.push_back(family);
    return all;
  }();
  return names;
}

std::string tokenizer_path(const std::string& relative) {
  const char* folder = std::getenv("PLIMSOLL_TOKENIZERS");
  return std::string(folder ? folder : "") + "/" + relative;
}

Result<std::shared_ptr<const Tokenizer>> load_real_tokenizer(const std::string& relative) {
  static std::map<std::string, std::shared_ptr<const Tokenizer>> loaded;
  if (const auto found = loaded.find(relative); found != loaded.end()) return found->second;
  PLIMSOLL_TRY(const auto artifact, artifact::open(tokenizer_path(relative)));
  PLIMSOLL_TRY(auto tokenizer, load_tokenizer(*artifact));
  return loaded[relative] = std::move(tokenizer);
}

Result<std::shared_ptr<const Tokenizer>> load_family(const std::string& family) {
  const auto found = paths().find(family);
  if (found == paths().end()) return fail(ErrorCode::kMalformed, "no family " + family, family, "");
  return load_real_tokenizer(found->second);
}

}  // namespace plimsoll::text
