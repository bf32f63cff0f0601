// SPDX-License-Identifier: Apache-2.0
#include "memory/vllm_sentences.h"

#include <cstdio>

namespace plimsoll::memory {
namespace {

std::string two_decimals(double value) {
  char text[64];
  std::snprintf(text, sizeof text, "%.2f", value);
  return text;
}

std::string gib(Bytes bytes, const VllmRules& rules) {
  if (rules.sentence >= VllmSentence::kRounded) return vllm_gib(bytes);
  return two_decimals(static_cast<double>(bytes.value) / static_cast<double>(kGiB));
}

std::string where_to_read(const VllmRules& rules) {
  if (rules.sentence == VllmSentence::kFixed) return "";
  return " See https://docs.vllm.ai/en/latest/configuration/conserving_memory/ for more details.";
}

std::string nothing_left(const VllmRules& rules) {
  const bool is_newest = rules.sentence == VllmSentence::kModel;
  return std::string(
             "No available memory for the cache blocks. Try increasing `gpu_memory_utilization` when "
             "initializing the engine") +
         (is_newest
              ? " (this flag also controls CPU memory reservation on the CPU backend, despite its name)."
              : ".") +
         where_to_read(rules);
}

}  // namespace

std::string vllm_gib(Bytes bytes) {
  std::string text = two_decimals(static_cast<double>(bytes.value) / static_cast<double>(kGiB));
  if (text.ends_with('0')) text.pop_back();
  return text;
}

std::string vllm_capacity_line(const VllmKvPlan& plan) {
  return "GPU KV cache size: " + with_commas(plan.kv_tokens) + " tokens, Maximum concurrency for " +
         with_commas(plan.max_model_len) + " tokens per request: " + two_decimals(plan.max_concurrency) + "x";
}

std::string vllm_refusal(const VllmShortage& shortage, const VllmRules& rules) {
  if (shortage.available.value <= 0) return nothing_left(rules);
  const bool is_newest = rules.sentence == VllmSentence::kModel;
  std::string text = std::string("To serve at least one request with the ") +
                     (is_newest ? "model's" : "models's") + " max seq len (" +
                     std::to_string(shortage.max_model_len) + "), (" + gib(shortage.required, rules) +
                     " GiB KV cache is needed, which is larger than the available KV cache memory (" +
                     gib(shortage.available, rules) + " GiB). ";
  if (shortage.longest_len > 0)
    text += "Based on the available memory, the estimated maximum model length is " +
            std::to_string(shortage.longest_len) + ". ";
  else if (rules.sentence < VllmSentence::kRounded)
    text += " ";  // where the estimate would stand
  return text + "Try increasing `gpu_memory_utilization` " +
         (is_newest ? "(which also controls CPU memory on the CPU backend) " : "") +
         "or decreasing `max_model_len` when initializing the engine." + where_to_read(rules);
}

std::string vllm_auto_refusal() {
  return "Cannot auto-fit max_model_len: not enough GPU memory available to serve even a single token. Try "
         "increasing `gpu_memory_utilization`.";
}

}  // namespace plimsoll::memory
