// SPDX-License-Identifier: Apache-2.0
#include "facts/catalogue.h"

#include <algorithm>
#include <iterator>
#include <vector>

namespace plimsoll::facts {
namespace {

constexpr std::string_view kLlama31_8B = R"({
  "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 4096, "intermediate_size": 14336,
  "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 128,
  "vocab_size": 128256, "tie_word_embeddings": false, "max_position_embeddings": 131072, "rope_theta": 500000.0,
  "rope_scaling": {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                   "original_max_position_embeddings": 8192},
  "attention_bias": false, "mlp_bias": false, "hidden_act": "silu", "rms_norm_eps": 1e-05,
  "torch_dtype": "bfloat16", "bos_token_id": 128000})";

constexpr std::string_view kLlama31_70B = R"({
  "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 8192, "intermediate_size": 28672,
  "num_hidden_layers": 80, "num_attention_heads": 64, "num_key_value_heads": 8, "head_dim": 128,
  "vocab_size": 128256, "tie_word_embeddings": false, "max_position_embeddings": 131072, "rope_theta": 500000.0,
  "rope_scaling": {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                   "original_max_position_embeddings": 8192},
  "attention_bias": false, "mlp_bias": false, "hidden_act": "silu", "rms_norm_eps": 1e-05,
  "torch_dtype": "bfloat16", "bos_token_id": 128000})";

constexpr std::string_view kPublished =
    "https://huggingface.co/meta-llama, config.json of the model, main branch, 2026-11-29";

// The first entry of a title is the one that speaks for it.
constexpr CatalogueEntry kCatalogue[] = {
    {"meta-llama/Llama-3.1-8B", "Llama 3.1 8B", kLlama31_8B, "llama3.1", kPublished},
    {"meta-llama/Llama-3.1-70B", "Llama 3.1 70B", kLlama31_70B, "llama3.1", kPublished},
    {"meta-llama/Llama-3.1-8B-Instruct", "Llama 3.1 8B Instruct", kLlama31_8B, "llama3.1", kPublished},
    {"meta-llama/Llama-3.1-70B-Instruct", "Llama 3.1 70B Instruct", kLlama31_70B, "llama3.1", kPublished},
    {"meta-llama/Llama-3.3-70B-Instruct", "Llama 3.3 70B Instruct", kLlama31_70B, "llama3.3", kPublished},
    // The names of 2024; the hub redirects them.
    {"meta-llama/Meta-Llama-3.1-8B", "Llama 3.1 8B", kLlama31_8B, "llama3.1", kPublished},
    {"meta-llama/Meta-Llama-3.1-70B", "Llama 3.1 70B", kLlama31_70B, "llama3.1", kPublished},
    {"meta-llama/Meta-Llama-3.1-8B-Instruct", "Llama 3.1 8B Instruct", kLlama31_8B, "llama3.1", kPublished},
    {"meta-llama/Meta-Llama-3.1-70B-Instruct", "Llama 3.1 70B Instruct", kLlama31_70B, "llama3.1",
     kPublished},
};

char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

}  // namespace

Json CatalogueEntry::config_json() const {
  auto parsed = parse_json(config, id);
  PLIMSOLL_CHECK(parsed.has_value(), "the catalogue's own configs are JSON");
  return std::move(*parsed);
}

std::span<const CatalogueEntry> catalogue() {
  // The ones written by hand come first: they have a title and a licence.
  static const std::vector<CatalogueEntry> kAll = [] {
    std::vector<CatalogueEntry> all(std::begin(kCatalogue), std::end(kCatalogue));
    for (const CatalogueEntry& entry : catalogue_table()) {
      const auto own = std::find_if(all.begin(), all.end(),
                                    [&](const CatalogueEntry& known) { return known.id == entry.id; });
      if (own == all.end())
        all.push_back(entry);
      else
        own->hub_parameters = entry.hub_parameters;
    }
    return all;
  }();
  return kAll;
}

const CatalogueEntry* find_catalogue(std::string_view id) {
  id = id.substr(0, id.find('@'));
  for (const CatalogueEntry& entry : catalogue())
    if (std::equal(entry.id.begin(), entry.id.end(), id.begin(), id.end(),
                   [](char a, char b) { return lower(a) == lower(b); }))
      return &entry;
  return nullptr;
}

std::optional<Json> catalogue_config(std::string_view id) {
  const CatalogueEntry* entry = find_catalogue(id);
  return entry ? std::optional(entry->config_json()) : std::nullopt;
}

}  // namespace plimsoll::facts
