// SPDX-License-Identifier: Apache-2.0
// What could be turned: each lever is the same question asked again with one setting changed.
#include <algorithm>

#include "plan/layout.h"
#include "plan/rows.h"
#include "plan/vllm_memory.h"

namespace plimsoll::plan {
namespace {

class Levers {
 public:
  Levers(const Question& question, const Row& row) : question_(question), row_(row) {}

  /// Asks again with the change; nothing is added when it does not fit even then, or brings nothing.
  /// Returns whether it was added.
  template <class Change>
  bool add(Lever lever, Change change) {
    Question changed = question_;
    change(changed);
    const auto after = make_row(changed);
    if (!after || !after->fits) return false;
    const bool brings_more =
        after->kv_tokens > row_.kv_tokens || after->max_concurrency > row_.max_concurrency;
    if (row_.fits && !brings_more) return false;
    lever.basis_after = basis_kind(*after);
    if (row_.fits) {
      lever.basis_before = basis_kind(row_);
      lever.kv_tokens_before = row_.kv_tokens.value;
      lever.requests_before = row_.max_concurrency;
    }
    lever.kv_tokens_after = after->kv_tokens.value;
    lever.requests_after = after->max_concurrency;
    levers_.push_back(std::move(lever));
    return true;
  }

  std::vector<Lever> take() { return std::move(levers_); }

 private:
  static std::string basis_kind(const Row& row) {
    const auto at = std::find_if(row.basis.begin(), row.basis.end(),
                                 [](const Basis& basis) { return basis.field == "kv_tokens"; });
    return at == row.basis.end() ? "" : at->kind;
  }

  const Question& question_;
  const Row& row_;
  std::vector<Lever> levers_;
};

Lever lever(std::string id, std::string flag, const std::string& value, std::string change,
            std::string caution) {
  Lever made;
  made.id = std::move(id);
  made.flag = std::move(flag) + " " + value;
  made.change = std::move(change);
  made.caution = std::move(caution);
  return made;
}

void add_length(Levers& levers, const Row& row) {
  std::int64_t length = row.max_model_len.value / 2;
  if (!row.fits && row.estimated_max_model_len)
    length = std::min(row.max_model_len.value, row.estimated_max_model_len->value);
  if (length < 1) return;
  levers.add(
      lever("max_model_len", "--max-model-len", std::to_string(length),
            "requests of at most " + with_commas(length) + " tokens", "longer requests are then refused"),
      [&](Question& q) {
        q.settings.max_model_len = length;
        q.settings.longest_model_len = false;
      });
}

bool can_keep_fp8(const Question& question) {
  return !question.target || !question.target->gpu ||
         !kernel_fault(question.model->spec, *question.target->gpu, true);
}

void add_common(Levers& levers, const Row& row, const Question& question) {
  if (row.kv_cache_dtype != "fp8" && can_keep_fp8(question))
    levers.add(lever("kv_cache_dtype", "--kv-cache-dtype", "fp8", "keys and values in 8 bits",
                     "measure the quality of answers first"),
               [](Question& q) { q.settings.kv_cache_dtype = "fp8"; });
  const auto stored = memory::parse_weight_format(row.weights_dtype);
  const int bits = stored ? memory::bits_per_weight(*stored) : 16;
  for (const auto format : {memory::WeightFormat::kFp8, memory::WeightFormat::kInt4}) {
    if (memory::bits_per_weight(format) >= bits) continue;
    const std::string text(memory::to_string(format));
    if (levers.add(lever("quantization", "--quantization", text, "weights in " + text,
                         "needs a quantized checkpoint; measure the quality, and take its files' real size"),
                   [&](Question& q) { q.settings.quantization = format; }))
      break;
  }
  if (!question.target || question.target->is_here) return;
  const std::int64_t now = question.target->count;
  for (const std::int64_t gpus : {now * 2, now * 4, now * 8})
    if (levers.add(lever("gpus", "--gpu", question.target->asked + ":" + std::to_string(gpus),
                         std::to_string(gpus) + " GPUs in place of " + std::to_string(now),
                         "the link between the GPUs bounds the speed"),
                   [&](Question& q) { q.target->count = gpus; }))
      break;
}

void add_pool(Levers& levers, const Row& row) {
  if (!row.larger_pool) return;
  levers.add(lever("kv_cache_memory_bytes", "--kv-cache-memory-bytes", std::to_string(row.larger_pool->value),
                   "a KV cache of " + as_gib(*row.larger_pool) + " in place of " + as_gib(row.kv_cache),
                   "less memory is left for other programs"),
             [&](Question& q) { q.settings.kv_cache_bytes = row.larger_pool; });
}

// Fewer sequences make the sampler smaller, where it is what a run takes most of.
void add_vllm_sequences(Levers& levers, const Question& question) {
  const std::int64_t sequences = vllm_batch_of(question).sequences / 2;
  if (sequences < 1 || sequences > INT32_MAX) return;
  levers.add(lever("max_num_seqs", "--max-num-seqs", std::to_string(sequences),
                   "at most " + std::to_string(sequences) + " sequences in a step", "more requests wait"),
             [&](Question& q) { q.settings.max_num_seqs = static_cast<int>(sequences); });
}

// Blocks for keys and values; experts of mixtures to the CPU, few layers first; more GPUs.
void add_llama_cpp(Levers& levers, const Row& row, const Question& question) {
  if (row.kv_cache_dtype != "q8_0")
    levers.add(lever("kv_cache_dtype", "--cache-type-k q8_0 --cache-type-v", "q8_0",
                     "keys and values in blocks of 8 bits", "measure the quality of answers first"),
               [](Question& q) {
                 q.settings.kv_cache_dtype = "q8_0";
                 q.settings.llama_cpp.key_type.clear();
                 q.settings.llama_cpp.value_type.clear();
               });
  if (row.fits || !question.target || question.target->is_here) return;
  const model::ModelSpec& spec = question.model->spec;
  const bool has_experts = std::any_of(spec.layers.begin(), spec.layers.end(), [](const model::Layer& layer) {
    return layer.ffn.kind == model::FfnKind::kMoe;
  });
  const auto layers = static_cast<int>(spec.layers.size());
  for (int moved = (layers + 3) / 4; has_experts && moved <= layers; moved += (layers + 3) / 4)
    if (levers.add(lever("n_cpu_moe", "--n-cpu-moe", std::to_string(moved),
                         "experts of the first " + std::to_string(moved) + " layers with the CPU",
                         "these layers run at the speed of the host's memory"),
                   [&](Question& q) { q.settings.llama_cpp.placement.cpu_expert_layers = moved; }))
      break;
  for (int kept = layers; kept >= 0; kept -= (layers + 7) / 8)
    if (levers.add(lever("n_gpu_layers", "--n-gpu-layers", std::to_string(kept),
                         std::to_string(kept) + " layers on the GPU, the rest with the CPU",
                         "the rest runs at the speed of the host's memory"),
                   [&](Question& q) { q.settings.llama_cpp.placement.gpu_layers = kept; }))
      break;
}

void add_embedded(Levers& levers, const Row& row, const Question& question) {
  if (row.kv_cache_dtype == "f32" && question.settings.kv_cache_dtype == "auto")
    levers.add(lever("kv_cache_dtype", "--dtype", "auto", "keys and values in bf16 in place of f32",
                     "answers are rounder than the reference's"),
               [](Question& q) { q.settings.dtype = "auto"; });
  else if (row.kv_cache_dtype == "f32" || row.kv_cache_dtype == "bf16")
    levers.add(lever("kv_cache_dtype", "--kv-cache-dtype", "int8", "keys and values in 8 bits",
                     "measure the quality of answers first: `plimsoll eval`"),
               [](Question& q) { q.settings.kv_cache_dtype = "int8"; });
  if (!question.settings.quantization)
    for (const auto format : {memory::WeightFormat::kInt8, memory::WeightFormat::kInt4}) {
      const std::string text(memory::to_string(format));
      if (levers.add(lever("quantization", "--quantization", text, "weights rounded to " + text + " at load",
                           "measure the quality of answers first: `plimsoll eval`"),
                     [&](Question& q) { q.settings.quantization = format; }))
        break;
    }
  const int sequences = question.settings.max_num_seqs.value_or(memory::EmbeddedOptions{}.max_num_seqs) / 2;
  if (sequences >= 1)
    levers.add(lever("max_num_seqs", "--max-num-seqs", std::to_string(sequences),
                     "at most " + std::to_string(sequences) + " sequences in a step",
                     "more requests wait; only their buffers shrink, and the pool's demand"),
               [&](Question& q) { q.settings.max_num_seqs = sequences; });
}

}  // namespace

std::vector<Lever> make_levers(const Question& question, const Row& row) {
  Levers levers(question, row);
  if (!row.can_be) return {};
  add_pool(levers, row);
  add_length(levers, row);
  if (question.rules.accounting == memory::Accounting::kEmbedded)
    add_embedded(levers, row, question);
  else if (question.rules.accounting == memory::Accounting::kLlamaCpp)
    add_llama_cpp(levers, row, question);
  else
    add_common(levers, row, question);
  if (question.rules.accounting == memory::Accounting::kVllm) add_vllm_sequences(levers, question);
  return levers.take();
}

}  // namespace plimsoll::plan
