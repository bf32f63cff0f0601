// SPDX-License-Identifier: Apache-2.0
// A model folder made for one test, removed with it. Holds what the test writes into it and nothing else.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include "inspect/inspect.h"

namespace plimsoll::inspect {

/// Four layers of a small llama; tests change single keys of it.
inline constexpr std::string_view kSmallLlama =
    R"({"architectures":["LlamaForCausalLM"],"model_type":"llama","hidden_size":64,"num_hidden_layers":4,
  "num_attention_heads":8,"num_key_value_heads":2,"intermediate_size":128,"vocab_size":320,
  "max_position_embeddings":2048,"rms_norm_eps":1e-05,"tie_word_embeddings":false,"torch_dtype":"bfloat16"})";

class ModelFolder {
 public:
  /// `name` is the folder's own name, which checks read sizes from.
  explicit ModelFolder(const std::string& name = "model") {
    std::string made = (std::filesystem::temp_directory_path() / "plimsoll_checks_XXXXXX").string();
    if (const char* path = ::mkdtemp(made.data())) above_ = path;
    std::filesystem::create_directories(above_ / name);
    path_ = above_ / name;
  }
  ~ModelFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(above_, ignored);
  }
  ModelFolder(const ModelFolder&) = delete;
  ModelFolder& operator=(const ModelFolder&) = delete;

  ModelFolder& write(const std::string& file, std::string_view text) {
    std::filesystem::create_directories((path_ / file).parent_path());
    std::ofstream(path_ / file, std::ios::binary) << text;
    return *this;
  }
  std::string path() const { return path_.string(); }
  Report inspected(const Options& options = {}) const {
    auto report = inspect(path(), options);
    return report ? std::move(*report) : Report{};
  }

 private:
  std::filesystem::path above_, path_;
};

/// The finding of this id, or null.
inline const Finding* finding_of(const Report& report, std::string_view id) {
  for (const Finding& finding : report.findings)
    if (finding.id == id) return &finding;
  return nullptr;
}

}  // namespace plimsoll::inspect
