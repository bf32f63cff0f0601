// SPDX-License-Identifier: Apache-2.0
// Lines of engines, release by release.
#include <gtest/gtest.h>

#include "verify/log_reader.h"

namespace plimsoll::verify {
namespace {

EngineStart start_of(std::string_view text) {
  LogReader reader;
  reader.feed(text);
  const Log log = reader.finish();
  EXPECT_EQ(log.runs.size(), 1U);
  return log.runs.empty() ? EngineStart{} : log.runs.back();
}

double gib(const std::optional<Printed>& value) {
  return value ? static_cast<double>(value->value) / static_cast<double>(kGiB) : -1e9;
}

TEST(EngineLines, TheFirstEngineOfVllm) {
  const EngineStart run = start_of(
      "INFO 11-20 10:00:00 llm_engine.py:237] Initializing an LLM engine (v0.6.6) with config: "
      "model='meta-llama/Llama-3.1-8B-Instruct', max_seq_len=20000, tensor_parallel_size=2, "
      "pipeline_parallel_size=1\n"
      "Loading model weights took 14.9888 GB\n"
      "Memory profiling takes 2.3 seconds\n"
      "the current vLLM instance can use total_gpu_memory (23.58GiB) x gpu_memory_utilization (0.90) = "
      "21.22GiB\n"
      "model weights take 14.99GiB; non_torch_memory takes 0.35GiB; PyTorch activation peak memory takes "
      "2.07GiB; the rest of the memory reserved for KV Cache is 3.81GiB.\n"
      "# GPU blocks: 1952, # CPU blocks: 2048\n"
      "Maximum concurrency for 20000 tokens per request: 1.56x\n"
      "Graph capturing finished in 14 secs, took 0.72 GiB\n");
  EXPECT_EQ(run.engine, "vllm");
  EXPECT_EQ(run.version, "0.6.6");
  EXPECT_EQ(run.tensor_parallel->value, 2);
  EXPECT_NEAR(gib(run.weights_bytes), 14.99, 1e-9);
  EXPECT_NEAR(gib(run.gpu_total_bytes), 23.58, 1e-9);
  EXPECT_NEAR(run.gpu_memory_utilization->value, 0.9, 1e-12);
  EXPECT_NEAR(gib(run.budget_bytes), 21.22, 1e-9);
  EXPECT_NEAR(gib(run.non_torch_bytes), 0.35, 1e-9);
  EXPECT_NEAR(gib(run.activation_bytes), 2.07, 1e-9);
  EXPECT_NEAR(gib(run.kv_cache_bytes), 3.81, 1e-9);
  EXPECT_EQ(run.num_blocks->value, 1952);
  EXPECT_EQ(run.max_model_len->value, 20'000);
  EXPECT_NEAR(run.max_concurrency->value, 1.56, 1e-12);
  EXPECT_NEAR(gib(run.cuda_graph_bytes), 0.72, 1e-9);
}

TEST(EngineLines, TheLastLineOfTheSecondEngine) {
  const EngineStart run = start_of(
      "Free memory on device (92.98/95.0 GiB) on startup. Desired GPU memory utilization is (0.9, 85.5 GiB). "
      "Actual usage is 54.82 GiB for weight, 1.13 GiB for peak activation, 0.63 GiB for non-torch memory, "
      "and "
      "0.06 GiB for CUDAGraph memory. Replace gpu_memory_utilization config with "
      "`--kv-cache-memory=30837070336` (28.72 GiB) to fit into requested memory, or "
      "`--kv-cache-memory=38870997504` (36.2 GiB) to fully utilize gpu memory.\n");
  EXPECT_NEAR(gib(run.gpu_free_bytes), 92.98, 1e-9);
  EXPECT_NEAR(gib(run.gpu_total_bytes), 95.0, 1e-9);
  EXPECT_NEAR(gib(run.budget_bytes), 85.5, 1e-9);
  EXPECT_NEAR(gib(run.weights_bytes), 54.82, 1e-9);
  EXPECT_NEAR(gib(run.activation_bytes), 1.13, 1e-9);
  EXPECT_NEAR(gib(run.non_torch_bytes), 0.63, 1e-9);
  EXPECT_NEAR(gib(run.cuda_graph_bytes), 0.06, 1e-9);
  EXPECT_EQ(run.suggested_kv_cache_memory_bytes->value, 30'837'070'336);
  const EngineStart now = start_of(
      "Free memory on device (78.5/79.2 GiB) on startup. Desired GPU memory utilization is (0.92, 72.86 "
      "GiB). "
      "Actual usage is 15.4 GiB for consumed memory (weights + non-torch), 1.9 GiB for peak activation, and "
      "0.5 GiB for CUDAGraph memory. Replace\n");
  EXPECT_FALSE(now.weights_bytes);
  EXPECT_NEAR(gib(now.activation_bytes), 1.9, 1e-9);
  EXPECT_NEAR(gib(now.cuda_graph_bytes), 0.5, 1e-9);
}

TEST(EngineLines, RanksBlocksAndGraphs) {
  const EngineStart run = start_of(
      "(Worker_TP0 pid=11) INFO Model loading took 7.51 GiB memory and 3.1 seconds\n"
      "(Worker_TP1 pid=12) INFO Model loading took 7.52 GiB memory and 3.1 seconds\n"
      "(Worker_TP0 pid=11) INFO Available KV cache memory: 58.1 GiB\n"
      "(Worker_TP1 pid=12) INFO Available KV cache memory: -0.25 GiB\n"
      "Setting attention block size to 1056 tokens to ensure that attention page size is >= mamba page "
      "size.\n"
      "Add 4 padding layers, may waste at most 6.67% KV cache memory\n"
      "CUDA graph pool memory: 0.62 GiB (actual), 0.61 GiB (estimated), difference: 0.01 GiB (1.6%).\n"
      "Engine 000: vllm cache_config_info with initialization after num_gpu_blocks is: 4722\n");
  EXPECT_EQ(run.ranks.size(), 2U);
  EXPECT_NEAR(gib(run.weights_bytes), 7.52, 1e-9);
  EXPECT_NEAR(gib(run.kv_cache_bytes), -0.25, 1e-9);
  EXPECT_EQ(run.block_size->value, 1056);
  EXPECT_EQ(run.padding_layers->value, 4);
  EXPECT_NEAR(gib(run.cuda_graph_bytes), 0.62, 1e-9);
  EXPECT_NEAR(gib(run.cuda_graph_estimate_bytes), 0.61, 1e-9);
  EXPECT_EQ(run.num_blocks->value, 4722);
}

TEST(EngineLines, RefusalsOfEveryKind) {
  const EngineStart tokens = start_of(
      "ValueError: The model's max seq len (131072) is larger than the maximum number of tokens that can be "
      "stored in KV cache (41200). Try increasing `gpu_memory_utilization`\n");
  EXPECT_TRUE(tokens.failed);
  EXPECT_EQ(tokens.engine, "vllm");
  EXPECT_EQ(tokens.max_model_len->value, 131'072);
  EXPECT_EQ(tokens.estimated_max_model_len->value, 41'200);
  const EngineStart old = start_of(
      "To serve at least one request with the models's max seq len (8192), (3.05 GB KV cache is needed, "
      "which "
      "is larger than the available KV cache memory (2.17 GB). Try increasing `gpu_memory_utilization`\n");
  EXPECT_NEAR(gib(old.required_kv_cache_bytes), 3.05, 1e-9);
  EXPECT_NEAR(gib(old.kv_cache_bytes), 2.17, 1e-9);
  EXPECT_FALSE(old.estimated_max_model_len);
  const EngineStart free = start_of(
      "ValueError: Free memory on device cuda:0 (19.77/22.05 GiB) on startup is less than desired GPU memory "
      "utilization (0.9, 19.84 GiB). Decrease GPU memory utilization or reduce GPU memory\n");
  EXPECT_TRUE(free.failed);
  EXPECT_NEAR(gib(free.gpu_free_bytes), 19.77, 1e-9);
  EXPECT_NEAR(gib(free.budget_bytes), 19.84, 1e-9);
}

TEST(EngineLines, Sglang) {
  const EngineStart run = start_of(
      "Load weight begin. avail mem=78.58 GB\n"
      "Load weight end. elapsed=3.2 s, type=LlamaForCausalLM, dtype=torch.bfloat16, avail mem=63.70 GB, mem "
      "usage=14.88 GB.\n"
      "[TP0] KV Cache is allocated. #tokens: 444500, K size: 27.13 GB, V size: 27.13 GB\n"
      "[TP1] KV Cache is allocated. #tokens: 444500, K size: 27.13 GB, V size: 27.13 GB\n"
      "Memory pool end. avail mem=8.30 GB\n"
      "Capture cuda graph end. Time elapsed: 5.1 s. mem usage=0.60 GB. avail mem=7.70 GB.\n"
      "max_total_num_tokens=444500, chunked_prefill_size=8192, max_prefill_tokens=16384, "
      "max_running_requests=2048, context_len=131072\n");
  EXPECT_EQ(run.engine, "sglang");
  EXPECT_NEAR(gib(run.weights_bytes), 14.88, 1e-9);
  EXPECT_NEAR(gib(run.kv_cache_bytes), 54.26, 1e-8);
  EXPECT_EQ(run.kv_tokens->value, 444'500);
  EXPECT_NEAR(gib(run.cuda_graph_bytes), 0.6, 1e-9);
  EXPECT_NEAR(gib(run.gpu_free_bytes), 78.58, 1e-9);
  EXPECT_EQ(run.max_num_batched_tokens->value, 8192);
  EXPECT_EQ(run.max_model_len->value, 131'072);
}

TEST(EngineLines, LlamaCpp) {
  const EngineStart run = start_of(
      "load_tensors:        CUDA0 model buffer size =  1834.82 MiB\n"
      "load_tensors:   CPU_Mapped model buffer size =   243.43 MiB\n"
      "llama_context: n_ctx         = 4096\n"
      "llama_kv_cache:      CUDA0 KV buffer size =   144.00 MiB\n"
      "llama_kv_cache: size =  144.00 MiB (  4096 cells,  36 layers,  1/1 seqs), K (f16):   72.00 MiB, V "
      "(f16): "
      "  72.00 MiB\n"
      "llama_context:      CUDA0 compute buffer size =   301.00 MiB\n"
      "llama_context:  CUDA_Host compute buffer size =    12.01 MiB\n");
  EXPECT_EQ(run.engine, "llama.cpp");
  EXPECT_NEAR(gib(run.weights_bytes) * 1024, 1834.82 + 243.43, 1e-3);
  EXPECT_NEAR(gib(run.kv_cache_bytes) * 1024, 144.0, 1e-3);
  EXPECT_EQ(run.kv_tokens->value, 4096);
  EXPECT_EQ(run.max_model_len->value, 4096);
  EXPECT_NEAR(gib(run.activation_bytes) * 1024, 313.01, 1e-3);
}

}  // namespace
}  // namespace plimsoll::verify
