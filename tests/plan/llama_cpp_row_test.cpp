// SPDX-License-Identifier: Apache-2.0
// Rows for llama.cpp: its flags, its devices, its own lines, and what is refused.
#include <gtest/gtest.h>

#include "tests/plan/requests.h"

namespace plimsoll::plan {
namespace {

Request asked(const std::string& gpu = "", std::int64_t length = 8192) {
  Request request = request_for("llama.cpp", gpu);
  request.settings.max_model_len = length;
  return request;
}

std::int64_t part(const Json& row, std::string_view name) {
  for (const Json& entry : row["memory"].items())
    if (*entry["part"].as_string() == name) return entry["bytes"].as_integer().value_or(-1);
  return -1;
}

std::int64_t buffer(const Json& row, std::string_view device, std::string_view kind) {
  for (const Json& entry : row["buffers"].items())
    if (*entry["device"].as_string() == device && *entry["kind"].as_string() == kind)
      return entry["bytes"].as_integer().value_or(-1);
  return 0;
}

TEST(LlamaCppRow, AllocatesTheWholeContextAtOnce) {
  const Json row = row_of(asked("24GiB"));
  EXPECT_EQ(row["fits"], Json(true));
  EXPECT_EQ(row["kv_cache_bytes_per_gpu"], Json(kGiB));
  EXPECT_EQ(row["kv_bytes_per_token_per_gpu"], Json(131'072));
  EXPECT_EQ(row["kv_tokens"], Json(8192));
  EXPECT_EQ(row["max_concurrency"], Json(1.0));
  EXPECT_EQ(row["error_bar_bytes"], Json(0));
  EXPECT_EQ(row["log_line"],
            Json("size = 1024.00 MiB (  8192 cells,  32 layers,  1/1 seqs), K (f16):  512.00 "
                 "MiB, V (f16):  512.00 MiB"));
  EXPECT_EQ(row["budget_bytes_per_gpu"], Json(23 * kGiB));
  EXPECT_EQ(part(row, "margin"), kGiB);
  // The embedding stays with the CPU: 128,256 x 4,096 in 16 bit.
  EXPECT_EQ(buffer(row, "CPU_Mapped", "model"), 1'050'673'152);
  EXPECT_EQ(buffer(row, "CUDA_Host", "output"), 513'024);
  EXPECT_EQ(buffer(row, "CUDA0", "kv"), kGiB);
  EXPECT_TRUE(finding_of(row, "NEEDS_GGUF"));
}

TEST(LlamaCppRow, TypesOfKeysAndValues) {
  auto request = asked();
  request.settings.kv_cache_dtype = "q8_0";
  EXPECT_EQ(row_of(request)["kv_cache_bytes_per_gpu"], Json(570'425'344));
  request.settings.llama_cpp.value_type = "f16";
  const Json mixed = row_of(request);
  EXPECT_EQ(mixed["kv_cache_bytes_per_gpu"], Json(822'083'584));
  EXPECT_EQ(mixed["kv_cache_dtype"], Json("q8_0/f16"));
  request.settings.kv_cache_dtype = "fp8";
  const auto refused = make_plan(request);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kUsage);
}

TEST(LlamaCppRow, SequencesDivideTheContext) {
  auto request = asked();
  request.settings.llama_cpp.context.num_seqs = 4;
  const Json row = row_of(request);
  EXPECT_EQ(row["kv_cache_bytes_per_gpu"], Json(kGiB));
  EXPECT_EQ(row["max_model_len"], Json(2048));
  EXPECT_EQ(row["max_concurrency"], Json(4.0));
  EXPECT_EQ(row["kv_bytes_per_request_per_gpu"], Json(kGiB / 4));
  request.settings.llama_cpp.context.is_unified = true;
  EXPECT_EQ(row_of(request)["max_model_len"], Json(8192));
}

TEST(LlamaCppRow, RefusesInTheEnginesWordsAndSaysWhatFits) {
  const Json row = row_of(asked("18GiB", 131'072));
  EXPECT_EQ(row["fits"], Json(false));
  EXPECT_TRUE(row["kv_tokens"].is_null());
  EXPECT_EQ(row["kv_cache_bytes_per_gpu"], Json(16 * kGiB));
  EXPECT_TRUE(row["engine_message"].as_string()->starts_with(
      "cannot meet free memory target of 1024 MiB, need to reduce device memory by "));
  const std::int64_t longest = row["estimated_max_model_len"].as_integer().value_or(0);
  EXPECT_EQ(longest % 256, 0);
  EXPECT_EQ(row_of(asked("18GiB", longest))["fits"], Json(true));
  EXPECT_EQ(row_of(asked("18GiB", longest + 256))["fits"], Json(false));
  auto request = asked("18GiB");
  request.settings.max_model_len.reset();
  request.settings.longest_model_len = true;
  EXPECT_EQ(row_of(request)["max_model_len"], Json(longest));
}

TEST(LlamaCppRow, LayersGoToSeveralGpusOrStayWithTheCpu) {
  const Json two = row_of(asked("12GiB:2"));
  EXPECT_EQ(two["fits"], Json(true));
  EXPECT_EQ(buffer(two, "CUDA0", "kv") + buffer(two, "CUDA1", "kv"), kGiB);
  EXPECT_EQ(buffer(two, "CUDA0", "kv"), kGiB / 32 * 17);
  auto request = asked("12GiB");
  request.settings.llama_cpp.placement.gpu_layers = 17;
  const Json half = row_of(request);
  EXPECT_EQ(buffer(half, "CUDA0", "kv"), kGiB / 2);
  EXPECT_EQ(buffer(half, "CPU", "kv"), kGiB / 2);
  EXPECT_EQ(half["kv_cache_bytes_per_gpu"], Json(kGiB));
  EXPECT_EQ(part(half, "kv_cache"), kGiB / 2);
  request.settings.llama_cpp.offloads_cache = false;
  EXPECT_EQ(buffer(row_of(request), "CPU", "kv"), kGiB);
  request.settings.llama_cpp.placement.split = {1, 1};
  EXPECT_FALSE(make_plan(request));
}

std::vector<std::int64_t> layers_of(const Json& row) {
  std::vector<std::int64_t> layers;
  for (const Json& device : row["devices"].items())
    layers.push_back(device["layers"].as_integer().value_or(-1));
  return layers;
}

TEST(LlamaCppRow, GpusOfTwoKindsShareByFreeMemory) {
  const Json row = row_of(asked("24GiB,12GiB"));
  EXPECT_EQ(row["fits"], Json(true));
  EXPECT_EQ(row["gpu"]["count"], Json(2));
  EXPECT_TRUE(row["gpu"]["memory_bytes"].is_null());
  EXPECT_EQ(row["gpu"]["kinds"].items()[1]["memory_bytes"], Json(12 * kGiB));
  // Two thirds of 33 layers, the output one of them; the rest, none with the CPU.
  EXPECT_EQ(layers_of(row), (std::vector<std::int64_t>{22, 11, 0}));
  EXPECT_EQ(buffer(row, "CUDA0", "kv"), kGiB / 32 * 22);
  EXPECT_EQ(buffer(row, "CUDA1", "kv"), kGiB / 32 * 10);
  const Json& second = row["devices"].items()[1];
  EXPECT_EQ(second["budget_bytes"], Json(11 * kGiB));
  EXPECT_EQ(second["used_bytes"], Json(buffer(row, "CUDA1", "model") + buffer(row, "CUDA1", "kv") +
                                       buffer(row, "CUDA1", "compute")));
  EXPECT_TRUE(row["devices"].items()[2]["budget_bytes"].is_null());
  EXPECT_TRUE(finding_of(row, "LAYERS_BY_FREE_MEMORY"));
  auto request = asked("24GiB,12GiB");
  request.settings.llama_cpp.placement.split = {22, 11};
  const Json held = row_of(request);
  EXPECT_EQ(layers_of(held), layers_of(row));
  EXPECT_FALSE(finding_of(held, "LAYERS_BY_FREE_MEMORY"));
  // Both work at the same time and keep copies, the second of more; not where the CPU has layers.
  EXPECT_GT(buffer(row, "CUDA1", "compute"), buffer(row, "CUDA0", "compute"));
  request.settings.llama_cpp.placement.gpu_layers = 32;
  EXPECT_LT(buffer(row_of(request), "CUDA1", "compute"), buffer(row, "CUDA0", "compute"));
  EXPECT_EQ(layers_of(row_of(asked("24GiB:2,12GiB"))), (std::vector<std::int64_t>{14, 13, 6, 0}));
  request = request_for("vllm", "24GiB,12GiB");
  const auto refused = make_plan(request);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kUsage);
  EXPECT_FALSE(parse_target("24GiB,"));
}

TEST(LlamaCppRow, LayersAreLaidAnewWhereSharesDoNotFit) {
  // By shares the second GPU has the output, too, and one layer more than its memory holds.
  const Json row = row_of(asked("13GiB,6GiB"));
  EXPECT_EQ(row["fits"], Json(true));
  EXPECT_TRUE(finding_of(row, "LAYERS_MOVED"));
  const auto layers = layers_of(row);
  EXPECT_EQ(layers[0] + layers[1], 33);
  for (const std::size_t gpu : {0U, 1U})
    EXPECT_LE(row["devices"].items()[gpu]["used_bytes"].as_integer().value_or(0),
              row["devices"].items()[gpu]["budget_bytes"].as_integer().value_or(0));
  auto request = asked("13GiB,6GiB");
  request.settings.llama_cpp.placement.split = {13, 6};
  EXPECT_EQ(row_of(request)["fits"], Json(false));
}

TEST(LlamaCppRow, TheHostsMemoryMayBeGiven) {
  auto request = asked("12GiB");
  request.settings.llama_cpp.placement.gpu_layers = 17;
  request.settings.llama_cpp.host_memory = Bytes(64 * kGiB);
  const Json row = row_of(request);
  EXPECT_EQ(row["fits"], Json(true));
  EXPECT_EQ(layers_of(row), (std::vector<std::int64_t>{17, 16}));
  EXPECT_EQ(row["devices"].items()[1]["budget_bytes"], Json(64 * kGiB));
  request.settings.llama_cpp.host_memory = Bytes(4 * kGiB);
  const Json small = row_of(request);
  EXPECT_EQ(small["fits"], Json(false));
  EXPECT_TRUE(small["engine_message"].as_string()->starts_with("the host has to hold "));
}

TEST(LlamaCppRow, ExpertsStayWithTheCpuWhereTheyDoNotFit) {
  Request request = request_for("llama.cpp", "24GiB", "Qwen/Qwen3-30B-A3B-Thinking-2507");
  request.settings.max_model_len = 4096;
  const Json row = row_of(request);
  EXPECT_EQ(row["fits"], Json(false));
  std::vector<std::string> ids;
  for (const Json& lever : row["levers"].items()) ids.push_back(*lever["id"].as_string());
  EXPECT_NE(std::find(ids.begin(), ids.end(), "n_cpu_moe"), ids.end());
  EXPECT_NE(std::find(ids.begin(), ids.end(), "n_gpu_layers"), ids.end());
  request.settings.llama_cpp.placement.cpu_expert_layers = 48;
  const Json moved = row_of(request);
  EXPECT_EQ(moved["fits"], Json(true));
  EXPECT_LT(buffer(moved, "CUDA0", "model"), 4 * kGiB);
}

TEST(LlamaCppRow, WindowsThatTheEngineDoesNotReadAreFull) {
  Request request = request_for("llama.cpp", "", "mistralai/Mistral-7B-Instruct-v0.1");
  request.settings.max_model_len = 32'768;
  const Json row = row_of(request);
  EXPECT_EQ(row["kv_cache_bytes_per_gpu"], Json(4 * kGiB));
  EXPECT_TRUE(finding_of(row, "WINDOW_IGNORED"));
}

}  // namespace
}  // namespace plimsoll::plan
