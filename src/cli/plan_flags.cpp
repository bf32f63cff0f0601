// SPDX-License-Identifier: Apache-2.0
#include "cli/plan_flags.h"

#include <CLI/CLI.hpp>

#include "cli/engine_flags.h"
#include "cli/model_argument.h"

namespace plimsoll::cli {

Result<std::optional<std::int64_t>> plan_size(const std::string& text, const char* flag) {
  if (text.empty()) return std::optional<std::int64_t>();
  const auto value = parse_size(text);
  if (!value)
    return fail(ErrorCode::kUsage, "\"" + text.substr(0, 60) + "\" is no number or size", flag,
                "for example 4096, 32K, 500MB or 4GiB");
  return value;
}

namespace {

Result<std::optional<int>> count_of(const std::string& text, const char* flag) {
  PLIMSOLL_TRY(const auto value, plan_size(text, flag));
  if (!value) return std::optional<int>();
  if (*value < 1 || *value > INT32_MAX)
    return fail(ErrorCode::kUsage, text + " is out of range", flag, "give a number from 1 to 2147483647");
  return std::optional<int>(static_cast<int>(*value));
}

Result<int> drafts_of(const std::string& text) {
  if (text.empty()) return 0;
  const auto config = parse_json(text, "--speculative-config");
  const auto count = config ? (*config)["num_speculative_tokens"].as_integer() : std::nullopt;
  const auto* method = config ? (*config)["method"].as_string() : nullptr;
  if (!count || *count < 1 || *count > 64 || !method)
    return fail(ErrorCode::kUsage, "the method and 1 to 64 num_speculative_tokens are needed",
                "--speculative-config", R"(for example '{"method":"mtp","num_speculative_tokens":3}')");
  if (!method->ends_with("mtp"))
    return fail(ErrorCode::kUnsupported, "drafts by " + method->substr(0, 40) + " are not modelled",
                "--speculative-config", "give the method mtp, or leave it out");
  return static_cast<int>(*count);
}

// Of the keys of vLLM's EngramConfig, the one that moves bytes between GPU and host.
Result<bool> tables_on_gpu(const std::string& text) {
  if (text.empty()) return false;
  const auto config = parse_json(text, "--engram-config");
  const auto is_in_host = config ? (*config)["cpu_offload"].as_bool() : std::nullopt;
  if (!is_in_host || config->size() != 1)
    return fail(ErrorCode::kUsage, "cpu_offload, true or false, is what is read", "--engram-config",
                R"(for example '{"cpu_offload":false}')");
  return !*is_in_host;
}

Status add_vllm_settings(const VllmFlags& flags, plan::Settings& settings) {
  settings.tensor_parallel = flags.tensor_parallel;
  settings.pipeline_parallel = flags.pipeline_parallel;
  settings.data_parallel = flags.data_parallel;
  settings.decode_context_parallel = flags.decode_context_parallel;
  settings.is_expert_parallel = flags.is_expert_parallel;
  settings.is_eager = flags.is_eager;
  settings.is_language_only = flags.is_language_only;
  settings.prefix_caching = flags.prefix_caching;
  if (flags.disables_hybrid_manager) settings.hybrid_manager = !*flags.disables_hybrid_manager;
  settings.is_async = !flags.has_no_async;
  if (!flags.state_mode.empty())
    settings.state_mode = flags.state_mode == "none"  ? memory::VllmStateMode::kNone
                          : flags.state_mode == "all" ? memory::VllmStateMode::kAll
                                                      : memory::VllmStateMode::kAlign;
  if (!flags.state_dtype.empty() && flags.state_dtype != "auto") {
    settings.state_dtype = dtype_from_config(flags.state_dtype);
    if (!settings.state_dtype)
      return fail(ErrorCode::kUsage, "\"" + flags.state_dtype.substr(0, 60) + "\" is no type for states",
                  "--mamba-ssm-cache-dtype", "give auto, float32, bfloat16 or float16");
  }
  settings.has_fp8_index_keys = flags.index_dtype == "fp8";
  settings.uses_flashinfer_prefill = flags.prefill_backend == "flashinfer";
  settings.has_whole_encoders = flags.encoder_mode == "data";
  PLIMSOLL_TRY(settings.has_tables_on_gpu, tables_on_gpu(flags.engram));
  PLIMSOLL_TRY(settings.num_speculative_tokens, drafts_of(flags.speculative));
  return {};
}

}  // namespace

Result<plan::Settings> plan_settings(const PlanFlags& flags) {
  plan::Settings settings;
  if (flags.max_model_len == "auto" || flags.max_model_len == "-1") {
    settings.longest_model_len = true;
  } else {
    PLIMSOLL_TRY(settings.max_model_len, plan_size(flags.max_model_len, "--max-model-len"));
  }
  PLIMSOLL_TRY(const auto bytes, plan_size(flags.kv_cache_bytes, "--kv-cache-memory-bytes"));
  if (bytes) settings.kv_cache_bytes = Bytes(*bytes);
  PLIMSOLL_TRY(settings.num_blocks, plan_size(flags.num_blocks, "--num-gpu-blocks-override"));
  PLIMSOLL_TRY(settings.block_size, count_of(flags.block_size, "--block-size"));
  PLIMSOLL_TRY(settings.max_num_seqs, count_of(flags.max_num_seqs, "--max-num-seqs"));
  PLIMSOLL_TRY(settings.max_num_batched_tokens,
               count_of(flags.max_num_batched_tokens, "--max-num-batched-tokens"));
  PLIMSOLL_TRY(settings.threads, count_of(flags.threads, "--threads"));
  settings.kv_cache_dtype = flags.kv_cache_dtype;
  settings.dtype = flags.dtype;
  settings.memory_utilization = flags.utilization;
  PLIMSOLL_TRY_VOID(add_vllm_settings(flags.vllm, settings));
  PLIMSOLL_TRY(settings.llama_cpp, llama_cpp_settings(flags.llama_cpp));
  PLIMSOLL_TRY(settings.quantization, quantization_flag(flags.quantization));
  return settings;
}

namespace {

// The library would take an optional one for a count, and set it where the flag is not given.
void add_choice(CLI::App& verb, const char* names, std::optional<bool>& choice, const char* what) {
  verb.add_flag_function(names, [&choice](std::int64_t count) { choice = count > 0; }, what);
}

void add_vllm_flags(CLI::App& verb, VllmFlags& flags) {
  constexpr int kMost = 1024;
  const auto count = CLI::Range(1, kMost);
  verb.add_option("--tensor-parallel-size", flags.tensor_parallel, "ranks that split every layer")
      ->check(count);
  verb.add_option("--pipeline-parallel-size", flags.pipeline_parallel, "stages of layers")->check(count);
  verb.add_option("--data-parallel-size", flags.data_parallel,
                  "copies of the model; experts are shared by them")
      ->check(count);
  verb.add_option("--decode-context-parallel-size", flags.decode_context_parallel,
                  "ranks that split a sequence")
      ->check(count);
  verb.add_flag("--enable-expert-parallel", flags.is_expert_parallel, "whole experts to ranks");
  add_choice(verb, "--enable-prefix-caching,!--no-enable-prefix-caching", flags.prefix_caching,
             "keep what prefixes left in the cache");
  add_choice(verb, "--disable-hybrid-kv-cache-manager,!--no-disable-hybrid-kv-cache-manager",
             flags.disables_hybrid_manager, "layers with windows keep all tokens");
  verb.add_flag("--enforce-eager", flags.is_eager, "no CUDA graphs");
  verb.add_flag("--language-model-only", flags.is_language_only, "encoders are not run");
  verb.add_option("--mm-encoder-tp-mode", flags.encoder_mode, "data: every rank holds encoders whole")
      ->check(CLI::IsMember({"weights", "data"}));
  verb.add_option("--engram-config", flags.engram,
                  R"({"cpu_offload":false}: n-gram tables on the GPU, not in the host's memory)");
  verb.add_flag("--no-async-scheduling", flags.has_no_async, "one batch under way");
  verb.add_option("--mamba-cache-mode", flags.state_mode, "what of states is kept for prefixes")
      ->check(CLI::IsMember({"none", "align", "all"}));
  verb.add_option("--mamba-ssm-cache-dtype", flags.state_dtype, "type of recurrent states");
  verb.add_option("--attention-config.indexer_kv_dtype", flags.index_dtype, "type of index keys")
      ->check(CLI::IsMember({"auto", "bfloat16", "fp8"}));
  verb.add_option("--gdn-prefill-backend", flags.prefill_backend, "kernels of gated delta nets")
      ->check(CLI::IsMember({"auto", "triton", "flashinfer"}));
  verb.add_option("--speculative-config", flags.speculative,
                  R"({"method":"mtp","num_speculative_tokens":3})");
}

}  // namespace

void add_plan_flags(CLI::App& verb, PlanFlags& flags) {
  verb.add_option("MODEL", flags.models,
                  std::string(kModelHelp) +
                      "; several make a table; without one: what of the built-in catalogue runs there");
  verb.add_option("--engine", flags.engine,
                  "vllm[@VERSION], sglang, llama.cpp, plimsoll (this program's own, on the CPU), or any (the "
                  "formula alone). "
                  "Default: the newest vLLM known; plimsoll on a machine without GPUs");
  verb.add_option("--against", flags.against,
                  "vllm@VERSION: another release, and what changes from --engine to it");
  verb.add_option("--accounting", flags.accounting, "simple: memory x share - weights - reserve, GB = 10^9")
      ->check(CLI::IsMember({"simple"}));
  verb.add_option("--gpu", flags.gpus, "NAME[:N] or a size with its unit, 24GB[:N]; may be given again")
      ->allow_extra_args(false);
  verb.add_flag(
      "--search", flags.is_search,
      "tries all layouts on up to N GPUs (8 where N is not given) of each --gpu, or of the catalogue: "
      "cheapest first, the others with the reason");
  verb.add_option("--gpu-price", flags.prices, "NAME=PRICE of one GPU for an hour; may be given again")
      ->allow_extra_args(false);
  verb.add_flag("--here", flags.is_here, "this machine's memory (the default when nothing else is said)");
  verb.add_option("--gpu-memory-bytes", flags.gpu_memory, "memory of one GPU, as the driver reports it");
  verb.add_option("--gpu-free-bytes", flags.gpu_free, "what of it is free at the start");
  verb.add_option("--max-model-len,--ctx-size", flags.max_model_len,
                  "longest request in tokens; auto: the longest that fits");
  verb.add_option("--kv-cache-dtype", flags.kv_cache_dtype, "auto, bfloat16, fp8, ...")
      ->capture_default_str();
  verb.add_option("--kv-cache-memory-bytes", flags.kv_cache_bytes,
                  "size of the KV cache; then no --gpu is needed");
  verb.add_option("--num-gpu-blocks-override", flags.num_blocks, "blocks of the KV cache");
  verb.add_option("--block-size", flags.block_size, "tokens per block");
  verb.add_option("--max-num-seqs", flags.max_num_seqs, "sequences in one step");
  verb.add_option("--max-num-batched-tokens", flags.max_num_batched_tokens, "tokens in one step");
  verb.add_option("--dtype", flags.dtype, "auto, or float32 for the reference's arithmetic")
      ->capture_default_str();
  verb.add_option("--quantization", flags.quantization, "count the weights as fp8, int8 or int4");
  verb.add_option("--gpu-memory-utilization,--mem-fraction-static", flags.utilization,
                  "share of the memory that may be used (0.92; SGLang's hangs on the GPU)")
      ->check(CLI::Range(0.01, 1.0));
  verb.add_option("--threads", flags.threads,
                  "worker threads of the embedded engine (as many cores as are usable)");
  add_vllm_flags(verb, flags.vllm);
  add_llama_cpp_flags(verb, flags.llama_cpp);
}

}  // namespace plimsoll::cli
