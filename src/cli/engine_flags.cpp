// SPDX-License-Identifier: Apache-2.0
#include "cli/engine_flags.h"

#include <CLI/CLI.hpp>

#include "facts/catalogue.h"

namespace plimsoll::cli {

Result<std::optional<std::int64_t>> size_flag(const std::string& text, const char* flag, std::int64_t high) {
  if (text.empty()) return std::optional<std::int64_t>();
  const auto size = parse_size(text);
  if (!size || *size < 1 || *size > high)
    return fail(ErrorCode::kUsage, "`" + text + "` is no count or size from 1 to " + std::to_string(high),
                flag, "give a plain integer, 32k, 500MB or 22.05GiB");
  return size;
}

Result<std::optional<memory::WeightFormat>> quantization_flag(const std::string& text) {
  const auto format = memory::parse_weight_format(text);
  if (format || text.empty()) return format;
  return fail(ErrorCode::kUsage, "\"" + text.substr(0, 60) + "\" is no format that weights are counted in",
              "--quantization", "fp8, int8 or int4");
}

void add_size_flags(CLI::App& verb, EngineFlags& flags) {
  verb.add_option("--kv-cache-memory-bytes", flags.kv_cache_memory_bytes, "size of the KV pool");
  verb.add_option("--num-gpu-blocks-override", flags.num_gpu_blocks_override, "blocks of the KV pool");
  verb.add_option("--block-size", flags.block_size, "tokens of a KV block")
      ->check(CLI::Range(1, 4096))
      ->capture_default_str();
  verb.add_option("--max-num-seqs", flags.max_num_seqs, "sequences in one step");
  verb.add_option("--max-num-batched-tokens", flags.max_num_batched_tokens, "tokens in one step");
  verb.add_option("--gpu-memory-utilization", flags.memory_utilization,
                  "share of the free memory for weights, buffers and pool together (default 0.92)");
  verb.add_option("--threads", flags.threads, "worker threads; 0: as many cores as are usable")
      ->check(CLI::Range(0, 1024))
      ->capture_default_str();
}

void add_engine_flags(CLI::App& verb, EngineFlags& flags) {
  verb.add_option("--dtype", flags.dtype,
                  "float32: activations, sums and KV in f32; auto: faster and rounder")
      ->check(CLI::IsMember({"auto", "float32"}))
      ->capture_default_str();
  verb.add_option("--kv-cache-dtype", flags.kv_cache_dtype,
                  "keys and values in bfloat16, float32, fp8 or int8; auto: bfloat16, or float32 as --dtype")
      ->capture_default_str();
  verb.add_option("--quantization", flags.quantization,
                  "round the weights of linear layers to int8 or int4 while they are loaded");
  verb.add_option("--max-model-len", flags.max_model_len, "longest prompt and answer together, in tokens");
  add_size_flags(verb, flags);
  verb.add_flag("--enable-prefix-caching,!--no-enable-prefix-caching", flags.enable_prefix_caching,
                "reuse the KV of equal prompt beginnings (on by default)");
  verb.add_option("--prefix-cache-dir", flags.prefix_cache_dir,
                  "folder in which that KV outlives the process; read at the start, written at the end");
  verb.add_option("--packed-cache", flags.packed_cache_dir,
                  "folder in which weights are kept as the kernels read them: the next start maps them");
  verb.add_option("--batching", flags.batching, "continuous, or static to compare with")
      ->check(CLI::IsMember({"continuous", "static"}))
      ->capture_default_str();
  verb.add_option("--generation-config", flags.generation_config,
                  "sampling defaults: auto (the model's own), vllm (none), or a folder")
      ->capture_default_str();
  verb.add_option("--chat-template", flags.chat_template, "file that replaces the model's chat template");
}

LoadProgress::LoadProgress(const CommonFlags& common, serve::LoadOptions& load)
    : line_(common.quiet), load_(load) {
  load_.engine.on_progress = [this](std::string_view text) { line_.show(text); };
}

LoadProgress::~LoadProgress() {
  load_.engine.on_progress = engine::EngineOptions().on_progress;
}

Result<serve::LoadOptions> load_options(const EngineFlags& flags, const std::string& model,
                                        const CommonFlags& common) {
  serve::LoadOptions options;
  options.model = model;
  options.lock = common.lock;
  options.catalogue = facts::catalogue_config;
  options.generation_config = flags.generation_config;
  options.chat_template = flags.chat_template;
  auto& engine = options.engine;
  engine.mode = flags.dtype == "float32" ? engine::ComputeMode::kFloat32 : engine::ComputeMode::kAuto;
  PLIMSOLL_TRY(engine.cache_format, memory::embedded_cache_format(flags.kv_cache_dtype));
  PLIMSOLL_TRY(engine.quantization, quantization_flag(flags.quantization));
  engine.batching = flags.batching == "static" ? engine::Batching::kStatic : engine::Batching::kContinuous;
  engine.threads = flags.threads;
  engine.memory_utilization = flags.memory_utilization;
  engine.block_size = flags.block_size;
  engine.enable_prefix_caching = flags.enable_prefix_caching;
  engine.prefix_cache_dir = flags.prefix_cache_dir;
  engine.packed_cache_dir = flags.packed_cache_dir;
  if (!flags.prefix_cache_dir.empty() && !flags.enable_prefix_caching)
    return fail(ErrorCode::kUsage, "a prefix cache that is switched off cannot be kept",
                "--prefix-cache-dir, --no-enable-prefix-caching", "give one of the two");
  PLIMSOLL_TRY(engine.max_model_len, size_flag(flags.max_model_len, "--max-model-len", INT32_MAX));
  PLIMSOLL_TRY(const auto pool, size_flag(flags.kv_cache_memory_bytes, "--kv-cache-memory-bytes", INT64_MAX));
  if (pool) engine.kv_cache_bytes = Bytes(*pool);
  PLIMSOLL_TRY(engine.num_blocks,
               size_flag(flags.num_gpu_blocks_override, "--num-gpu-blocks-override", INT32_MAX));
  PLIMSOLL_TRY(const auto seqs, size_flag(flags.max_num_seqs, "--max-num-seqs", 65536));
  if (seqs) engine.max_num_seqs = static_cast<int>(*seqs);
  PLIMSOLL_TRY(const auto tokens,
               size_flag(flags.max_num_batched_tokens, "--max-num-batched-tokens", 1 << 20));
  if (tokens) engine.max_num_batched_tokens = static_cast<int>(*tokens);
  return options;
}

}  // namespace plimsoll::cli
