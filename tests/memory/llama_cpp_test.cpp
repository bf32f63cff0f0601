// SPDX-License-Identifier: Apache-2.0
// What llama.cpp allocates: cells, windows, states, types in blocks, buffers of weights. The engine itself is
// asked by tools/check_llama_cpp.
#include <gtest/gtest.h>

#include "memory/memory.h"
#include "tests/memory/worked_case.h"

namespace plimsoll::memory {
namespace {

using testing::kLlama8B;
using testing::llama;

LlamaCppCache cache_of(const model::ModelSpec& spec, const LlamaCppContext& context) {
  const auto cache = llama_cpp_cache(spec, context);
  EXPECT_TRUE(cache) << (cache ? "" : cache.error().describe());
  return cache ? *cache : LlamaCppCache();
}

Bytes bytes_of(DType keys, DType values) {
  return cache_of(llama(kLlama8B), {.context_tokens = 8192, .key_dtype = keys, .value_dtype = values})
      .total();
}

TEST(LlamaCpp, WorkedCase) {
  const testing::WorkedCase page("llama_cpp.md");
  const model::ModelSpec spec = llama(kLlama8B);
  EXPECT_EQ(cache_of(spec, {.context_tokens = 8000}).context_tokens, page.integer("context_of_8000"));
  EXPECT_EQ(cache_of(spec, {.context_tokens = 8192}).keys(false).value, page.integer("f16_keys_at_8192"));
  EXPECT_EQ(bytes_of(DType::kF16, DType::kF16).value, page.integer("f16_cache_at_8192"));
  EXPECT_EQ(bytes_of(DType::kQ8_0, DType::kQ8_0).value, page.integer("q8_0_cache_at_8192"));
  EXPECT_EQ(bytes_of(DType::kQ8_0, DType::kF16).value, page.integer("q8_0_keys_f16_values_at_8192"));
  EXPECT_EQ(bytes_of(DType::kQ4_0, DType::kQ4_0).value, page.integer("q4_0_cache_at_8192"));
  const auto three = cache_of(spec, {.context_tokens = 10'000, .num_seqs = 3});
  EXPECT_EQ(three.sequence_tokens, page.integer("sequence_of_10000_over_3"));
  EXPECT_EQ(three.context_tokens, page.integer("context_of_10000_over_3"));
  const model::ModelSpec ungrouped = llama({80, 8192, 64, 64, 128, 24'576, 152'064, 32'768});
  EXPECT_EQ(cache_of(ungrouped, {.context_tokens = 32'848}).total().value,
            page.integer("f16_cache_at_32848_of_80_layers_with_64_heads"));
  EXPECT_EQ(llama_cpp_output(spec, 1).value, page.integer("output_buffer"));
  EXPECT_EQ(llama_cpp_output(spec, 4).value, page.integer("output_buffer_of_4"));
}

model::ModelSpec windowed() {
  model::ModelSpec spec = llama(kLlama8B);
  std::get<model::Attention>(spec.layers[0].mixer).window_tokens = 1024;
  return spec;
}

TEST(LlamaCpp, WindowsKeepWhatTheyReadAndWhatIsComputedAtOnce) {
  const testing::WorkedCase page("llama_cpp.md");
  EXPECT_EQ(cache_of(windowed(), {.context_tokens = 32'768}).window_tokens, page.integer("window_cells"));
  EXPECT_EQ(cache_of(windowed(), {.context_tokens = 32'768, .num_seqs = 4, .is_unified = true}).window_tokens,
            page.integer("window_cells_of_4_unified"));
  EXPECT_EQ(cache_of(windowed(), {.context_tokens = 1024}).window_tokens,
            page.integer("window_cells_at_1024"));
  EXPECT_EQ(cache_of(windowed(), {.context_tokens = 32'768, .keeps_whole_windows = true}).total(),
            cache_of(llama(kLlama8B), {.context_tokens = 32'768}).total());
  EXPECT_EQ(cache_of(windowed(), {.context_tokens = 32'768, .uses_windows = false}).window_tokens, 0);
  const auto cut = cache_of(windowed(), {.context_tokens = 300, .batch_tokens = 200});
  EXPECT_EQ(cut.batch_tokens, 200);
  EXPECT_EQ(cut.micro_batch_tokens, 200);
}

TEST(LlamaCpp, SequencesOfTheirOwnOrShared) {
  const auto own = cache_of(llama(kLlama8B), {.context_tokens = 8192, .num_seqs = 4});
  EXPECT_EQ(own.sequence_tokens, 2048);
  EXPECT_EQ(own.num_streams, 4);
  const auto shared = cache_of(llama(kLlama8B), {.context_tokens = 8192, .num_seqs = 4, .is_unified = true});
  EXPECT_EQ(shared.sequence_tokens, 8192);
  EXPECT_EQ(own.total(), shared.total());
}

TEST(LlamaCpp, StatesAreKeptInThirtyTwoBitsForEachSequence) {
  model::ModelSpec spec = llama(kLlama8B);
  spec.layers[1].mixer = model::State{
      .kind = model::StateKind::kMamba2, .recurrent_elements = 1000, .convolution_elements = 30, .kernel = 4};
  const auto cache = cache_of(spec, {.context_tokens = 4096, .num_seqs = 2, .is_unified = true});
  EXPECT_EQ(cache.convolutions(), Bytes(2 * 30 * 4));
  EXPECT_EQ(cache.states(), Bytes(2 * 1000 * 4));
  EXPECT_EQ(cache.keys(false), Bytes(std::int64_t{31} * 4096 * 8 * 128 * 2));
}

TEST(LlamaCpp, LatentsAndIndexKeys) {
  model::ModelSpec spec = llama(kLlama8B);
  model::Latent latent{
      .q_heads = 16, .kv_lora_rank = 512, .qk_rope_head_dim = 64, .qk_nope_head_dim = 128, .v_head_dim = 128};
  spec.layers.assign(1, model::Layer());
  spec.layers[0].mixer = latent;
  EXPECT_EQ(cache_of(spec, {.context_tokens = 256}).total(), Bytes(256 * 576 * 2));
  EXPECT_EQ(cache_of(spec, {.context_tokens = 256, .absorbs_latents = false}).total(),
            Bytes(256 * 16 * (192 + 128) * 2));
  latent.indexer = model::Indexer{.heads = 8, .head_dim = 128};
  spec.layers[0].mixer = latent;
  const auto sparse = cache_of(spec, {.context_tokens = 256, .key_dtype = DType::kQ8_0});
  EXPECT_EQ(sparse.index_keys(), Bytes(256 * 4 * 34));
  EXPECT_EQ(sparse.keys(false), Bytes(256 * 18 * 34));
}

TEST(LlamaCpp, RefusesWhatTheEngineRefuses) {
  const model::ModelSpec spec = llama(kLlama8B);
  EXPECT_FALSE(llama_cpp_cache(spec, {}));
  EXPECT_FALSE(llama_cpp_cache(spec, {.context_tokens = 256, .num_seqs = 257}));
  EXPECT_FALSE(llama_cpp_cache(
      spec, {.context_tokens = 256, .value_dtype = DType::kQ8_0, .has_flash_attention = false}));
  model::ModelSpec narrow = spec;
  for (auto& layer : narrow.layers) std::get<model::Attention>(layer.mixer).head_dim = 72;
  EXPECT_FALSE(llama_cpp_cache(narrow, {.context_tokens = 256, .key_dtype = DType::kQ4_0}));
  model::ModelSpec crossed = spec;
  std::get<model::Attention>(crossed.layers[0].mixer).is_cross = true;
  EXPECT_FALSE(llama_cpp_cache(crossed, {.context_tokens = 256}));
}

LlamaCppWeight weight_of(const char* name, LlamaCppPlace place, int layer, std::int64_t bytes,
                         std::int64_t offset) {
  LlamaCppWeight weight;
  weight.name = name;
  weight.place = place;
  weight.layer = layer;
  weight.is_expert = weight.name.find("exps") != std::string::npos;
  weight.dtype = DType::kQ4_0;
  weight.columns = 64;
  weight.rows = 16;
  weight.rank = weight.is_expert ? 3 : 2;
  weight.bytes = Bytes(bytes);
  weight.offset = offset;
  return weight;
}

// An embedding, two layers with experts in the second, and the output; 1,000 bytes apart.
LlamaCppModelWeights small_model() {
  LlamaCppModelWeights model;
  model.num_layers = 2;
  model.is_stored = true;
  model.weights = {weight_of("token_embd.weight", LlamaCppPlace::kInput, -1, 576, 0),
                   weight_of("blk.0.attn_q.weight", LlamaCppPlace::kRepeating, 0, 576, 1000),
                   weight_of("blk.1.attn_q.weight", LlamaCppPlace::kRepeating, 1, 576, 2000),
                   weight_of("blk.1.ffn_up_exps.weight", LlamaCppPlace::kRepeating, 1, 576, 3000),
                   weight_of("output.weight", LlamaCppPlace::kOutput, -1, 576, 4000)};
  return model;
}

LlamaCppWeightBuffers buffers_of(const LlamaCppModelWeights& model, const LlamaCppPlacement& placement) {
  const auto buffers = llama_cpp_weight_buffers(model, placement);
  EXPECT_TRUE(buffers) << (buffers ? "" : buffers.error().describe());
  return buffers ? *buffers : LlamaCppWeightBuffers();
}

TEST(LlamaCpp, WithoutGpusEachTypeTheKernelsReorderIsCopied) {
  const auto repacked = buffers_of(small_model(), {});
  EXPECT_EQ(repacked.host, Bytes(576));
  EXPECT_EQ(repacked.repacked, Bytes(4 * 576));
  const auto mapped = buffers_of(small_model(), {.is_repacked = false});
  EXPECT_EQ(mapped.host, Bytes(4576));
  const auto read = buffers_of(small_model(), {.is_mapped = false, .is_repacked = false});
  EXPECT_EQ(read.host, Bytes(5 * 576));
  LlamaCppModelWeights tied = small_model();
  tied.weights.pop_back();
  tied.ties_embedding = true;
  EXPECT_EQ(buffers_of(tied, {}).repacked, Bytes(4 * 576));
  EXPECT_EQ(buffers_of(tied, {.is_mapped = false, .is_repacked = false}).host, Bytes(4 * 576));
}

TEST(LlamaCpp, GpusTakeLayersFromTheLastAndTheOutputFirst) {
  EXPECT_EQ(llama_cpp_layer_devices(4, {.num_gpus = 1, .gpu_layers = 2}),
            (std::vector<int>{-1, -1, -1, 0, 0}));
  EXPECT_EQ(llama_cpp_layer_devices(4, {.num_gpus = 2}), (std::vector<int>{0, 0, 0, 1, 1}));
  EXPECT_EQ(llama_cpp_layer_devices(4, {.num_gpus = 2, .split = {3, 1}}), (std::vector<int>{0, 0, 0, 0, 1}));
  EXPECT_EQ(llama_cpp_layer_devices(2, {}), (std::vector<int>{-1, -1, -1}));
  // Rows of 64 are filled up to 512: 448 elements more, 252 bytes; 828 up to whole 128.
  const auto all = buffers_of(small_model(), {.num_gpus = 1});
  EXPECT_EQ(all.gpus.at(0), Bytes(4 * 896));
  EXPECT_EQ(all.host, Bytes(576));
  EXPECT_EQ(all.repacked, Bytes(0));
  const auto experts = buffers_of(small_model(), {.num_gpus = 1, .cpu_expert_layers = 2});
  EXPECT_EQ(experts.gpus.at(0), Bytes(3 * 896));
  EXPECT_EQ(experts.host, Bytes(3576));
  const auto moved = buffers_of(small_model(), {.num_gpus = 1, .overrides = {{"attn_q", -1}}});
  EXPECT_EQ(moved.gpus.at(0), Bytes(2 * 896));
}

TEST(LlamaCpp, PatternsThatAreNoneAreRefused) {
  EXPECT_FALSE(llama_cpp_weight_buffers(small_model(), {.overrides = {{"(", -1}}}));
  LlamaCppModelWeights by_config = small_model();
  by_config.is_stored = false;
  EXPECT_FALSE(llama_cpp_weight_buffers(by_config, {.overrides = {{"exps", -1}}}));
}

double mib(Bytes bytes) {
  return static_cast<double>(bytes.value) / static_cast<double>(kMiB);
}

TEST(LlamaCpp, InputsOfAStepAreMasksIndicesAndEmbeddedTokens) {
  // A start recorded in 2024 without flash attention printed 9.01 MiB for the host: 512 tokens of 2,560
  // values, a mask of 2,048 cells in 32 bit, indices. 162 for the GPU.
  const model::ModelSpec spec = llama({32, 2560, 32, 32, 80, 10240, 50304, 2048});
  const LlamaCppContext context{.context_tokens = 2048, .has_flash_attention = false};
  const auto compute = llama_cpp_compute(spec, context, cache_of(spec, context), 1);
  EXPECT_NEAR(mib(compute.kept + compute.embedded), 9.01, 0.01);
  EXPECT_NEAR(mib(compute.gpu(true)), 162, 0.1);
  EXPECT_EQ(cache_of(spec, context).total(), Bytes(640 * kMiB));
}

TEST(LlamaCpp, GpusThatWorkAtTheSameTimeKeepCopies) {
  // As the engine printed for two devices behind its RPC backend; in MiB, of two decimals.
  const model::ModelSpec spec = llama(kLlama8B);
  const auto compute = [&](std::int64_t tokens, int copies) {
    const LlamaCppContext context{.context_tokens = tokens};
    return llama_cpp_compute(spec, context, cache_of(spec, context), 1, copies);
  };
  EXPECT_NEAR(mib(compute(32'768, 1).gpu(true)), 140.01, 0.01);
  EXPECT_NEAR(mib(compute(32'768, 1).host(false)), 48.01, 0.01);
  EXPECT_NEAR(mib(compute(8192, 1).host(true)), 124.01, 0.01);
  for (const auto& [tokens, first, behind, host] :
       {std::tuple{8192, 172.04, 196.04, 72.05}, std::tuple{32'768, 268.04, 292.04, 168.05}}) {
    const LlamaCppCompute four = compute(tokens, kLlamaCppCopies);
    EXPECT_NEAR(mib(four.gpu(true)), first, 0.02);
    EXPECT_NEAR(mib(four.gpu(false)), behind, 0.02);
    EXPECT_NEAR(mib(four.host(false)), host, 0.02);
  }
}

}  // namespace
}  // namespace plimsoll::memory
