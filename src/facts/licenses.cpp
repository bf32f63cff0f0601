// SPDX-License-Identifier: Apache-2.0
#include "facts/licenses.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

namespace plimsoll::facts {
namespace {

constexpr std::size_t kMaxText = std::size_t{64} << 10;  // titles and grants stand at the top

char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

bool is_blank(char c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f' || c == '\v';
}

/// Lower case, blanks and underscores as one hyphen, ends trimmed: how ids are compared.
std::string id_form(std::string_view text) {
  std::string result;
  for (const char c : text) {
    const bool is_separator = is_blank(c) || c == '_' || c == '-';
    if (!is_separator)
      result += lower(c);
    else if (!result.empty() && result.back() != '-')
      result += '-';
  }
  while (result.ends_with('-')) result.pop_back();
  return result;
}

/// Lower case with single blanks: how texts are searched.
std::string text_form(std::string_view text) {
  std::string result;
  text = text.substr(0, kMaxText);
  result.reserve(text.size());
  for (const char c : text) {
    if (!is_blank(c))
      result += lower(c);
    else if (!result.empty() && result.back() != ' ')
      result += ' ';
  }
  return result;
}

/// Names under which cards give a licence of the table.
constexpr std::array<std::pair<std::string_view, std::string_view>, 39> kAliases{{
    {"apache-license-2.0", "apache-2.0"},
    {"apache2", "apache-2.0"},
    {"apache-2", "apache-2.0"},
    {"mit-license", "mit"},
    {"mrl", "mistral-research"},
    {"mistral-ai-research-license", "mistral-research"},
    {"mistral-ai-research-license-(mrl)", "mistral-research"},
    {"mistral-ai-non-production-license", "mnpl"},
    {"deepseek-license", "deepseek"},
    {"deepseek-model-license", "deepseek"},
    {"qwen-license", "qwen"},
    {"qwen-license-agreement", "qwen"},
    {"qwen-research-license", "qwen-research"},
    {"qwen-community-license-1.0", "qwen-community-1.0"},
    {"qwen-community", "qwen-community-1.0"},
    {"tongyi-qianwen-license-agreement", "tongyi-qianwen"},
    {"tongyi-qianwen-license", "tongyi-qianwen"},
    {"llama-2", "llama2"},
    {"llama-2-community-license", "llama2"},
    {"llama-3-community-license", "llama3"},
    {"llama-3.1-community-license", "llama3.1"},
    {"llama-3.2-community-license", "llama3.2"},
    {"llama-3.3-community-license", "llama3.3"},
    {"llama-4-community-license", "llama4"},
    {"gemma-terms-of-use", "gemma"},
    {"nvidia-open-model-license-agreement", "nvidia-open-model-license"},
    {"nvidia-nemotron-open-model-license-agreement", "nvidia-nemotron-open-model-license"},
    {"jamba-open-model-license-agreement", "jamba-open-model-license"},
    {"falcon-llm-license-2.0", "falcon-llm-license"},
    {"tii-falcon-license-2.0", "falcon-llm-license"},
    {"stability-ai-community", "stabilityai-ai-community"},
    {"stability-ai-community-license", "stabilityai-ai-community"},
    {"hunyuan-community", "tencent-hunyuan-community"},
    {"tencent-license", "tencent-hunyuan-community"},
    {"lfm-open-license-1.0", "lfm1.0"},
    {"modified-mit-license", "modified-mit"},
    {"grok-2", "grok2-community"},
    {"databricks-open-model", "databricks-open-model-license"},
    {"apple-amlr-license", "apple-amlr"},
}};

struct Phrase {
  std::string_view id, text, also;  // both must stand in the licence; `also` may be empty
};

/// From the particular to the general: of those that stand at one place, the first that fits is meant.
constexpr Phrase kPhrases[] = {
    {"llama4", "llama 4 community license", ""},
    {"llama3.3", "llama 3.3 community license", ""},
    {"llama3.2", "llama 3.2 community license", ""},
    {"llama3.1", "llama 3.1 community license", ""},
    {"llama3", "meta llama 3 community license", ""},
    {"llama2", "llama 2 community license", ""},
    {"health-ai-developer-foundations", "health ai developer foundations", ""},
    {"gemma", "gemma terms of use", ""},
    {"qwen-community-1.0", "qwen community license", ""},
    {"qwen-research", "qwen research license", ""},
    {"qwen", "qwen license agreement", ""},
    {"tongyi-qianwen-research", "tongyi qianwen research license", ""},
    {"tongyi-qianwen", "tongyi qianwen license agreement", ""},
    {"deepseek", "deepseek license agreement", ""},
    {"deepseek", "deepseek model license", ""},
    {"mistral-research", "mistral ai research license", ""},
    {"mnpl", "mistral ai non-production license", ""},
    {"falcon-180b", "falcon 180b tii license", ""},
    {"falcon-llm-license", "falcon llm license", ""},
    {"jamba-open-model-license", "jamba open model license", ""},
    {"nvidia-nemotron-open-model-license", "nvidia nemotron open model license", ""},
    {"nvidia-open-model-license", "nvidia open model license", ""},
    {"grok2-community", "grok 2 community license", ""},
    {"stabilityai-ai-community", "stability ai community license", ""},
    {"yi-license", "yi series models", "license agreement"},
    {"exaone", "exaone ai model license", " - nc"},
    {"lfm1.0", "lfm open license", ""},
    {"tencent-hunyuan-community", "tencent hunyuan", "community license"},
    {"databricks-open-model-license", "databricks open model license", ""},
    {"apple-amlr", "apple machine learning research model license", ""},
    {"bigscience-bloom-rail-1.0", "bigscience rail license", ""},
    {"bigcode-openrail-m", "bigcode open rail-m", ""},
    {"creativeml-openrail-m", "creativeml open rail", ""},
    {"bigscience-openrail-m", "bigscience open rail", ""},
    {"agpl-3.0", "gnu affero general public license", "version 3"},
    {"lgpl-3.0", "gnu lesser general public license", "version 3"},
    {"lgpl-2.1", "gnu lesser general public license", "version 2.1"},
    {"lgpl", "gnu library general public license", ""},  // 2.0
    {"gpl-3.0", "gnu general public license", "version 3"},
    {"gpl-2.0", "gnu general public license", "version 2"},
    {"mpl-2.0", "mozilla public license", "version 2.0"},
    {"cc-by-nc-nd-4.0", "attribution-noncommercial-noderivatives 4.0", ""},
    {"cc-by-nc-sa-4.0", "attribution-noncommercial-sharealike 4.0", ""},
    {"cc-by-nc-4.0", "attribution-noncommercial 4.0", ""},
    {"cc-by-nd-4.0", "attribution-noderivatives 4.0", ""},
    {"cc-by-sa-4.0", "attribution-sharealike 4.0", ""},
    {"cc-by-4.0", "attribution 4.0 international", ""},
    {"cc0-1.0", "cc0 1.0 universal", ""},
    {"modified-mit", "permission is hereby granted, free of charge", "monthly active users"},
    {"apache-2.0", "apache license", "version 2.0, january 2004"},
    {"unlicense", "free and unencumbered software released into the public domain", ""},
    {"mit", "permission is hereby granted, free of charge", "without restriction, including"},
    {"bsd-3-clause", "redistribution and use in source and binary forms", "neither the name"},
    {"bsd-2-clause", "redistribution and use in source and binary forms", ""},
    {"isc", "permission to use, copy, modify, and/or distribute this software", ""},
};

}  // namespace

std::string_view to_string(Permission permission) {
  switch (permission) {
    case Permission::kUnknown:
      return "";
    case Permission::kYes:
      return "yes";
    case Permission::kNo:
      return "no";
    case Permission::kConditional:
      return "conditional";
  }
  return "";
}

const LicenseFacts* find_license(std::string_view id) {
  std::string wanted = id_form(id.substr(0, 120));
  for (const auto& [alias, name] : kAliases)
    if (alias == wanted) wanted = name;
  for (const LicenseFacts& row : all_licenses())
    if (row.id == wanted) return &row;
  return nullptr;
}

const LicenseFacts* recognize_license(std::string_view text) {
  // Licences speak of others further down; what stands first is the title of this one.
  const std::string searched = text_form(text);
  const Phrase* found = nullptr;
  std::size_t at = std::string::npos;
  for (const Phrase& phrase : kPhrases) {
    const std::size_t place = searched.find(phrase.text);
    if (place >= at || searched.find(phrase.also) == std::string::npos) continue;
    found = &phrase;
    at = place;
  }
  return found ? find_license(found->id) : nullptr;
}

}  // namespace plimsoll::facts
