// SPDX-License-Identifier: Apache-2.0
#include "tests/plan/requests.h"

namespace plimsoll::plan {
namespace {

TEST(SimpleTable, HasTheDocumentsEightRowsToTheDigit) {
  Request request;
  request.is_simple = true;
  const auto plan = make_plan(request);
  ASSERT_TRUE(plan) << plan.error().describe();
  EXPECT_TRUE(plan->fits());  // a table to look at: two of its rows would not start
  const std::string text = to_text(*plan);
  for (const char* line : {
           " 8B KV per token: 131,072 bytes, 8K ctx 1.07 GB, 128K ctx 17.2 GB\n",
           "70B KV per token: 327,680 bytes, 8K ctx 2.68 GB, 128K ctx 42.9 GB\n",
           "    8B without GQA: 524,288 bytes per token\n",
           "1x24  bf16            16.1     4.0    30,666    8,192       3.7\n",
           "1x24  bf16            16.1     4.0    30,666  131,072       0.2\n",
           "1x80  bf16            16.1    55.5   423,733  131,072       3.2\n",
           "2x80  bf16           141.1     2.1     6,386    8,192       0.8\n",
           "4x80  bf16           141.1   145.3   443,398    8,192      54.1\n",
           "2x80  bf16            70.6    72.6   221,699    8,192      27.1\n",
           "2x80  fp8             70.6    72.6   443,398    8,192      54.1\n",
           "1x80  bf16            35.3    36.3   110,849    8,192      13.5\n",
       })
    EXPECT_NE(text.find(line), std::string::npos) << line << "in\n" << text;
}

TEST(SimpleTable, FirstRowAsJson) {
  Request request;
  request.is_simple = true;
  const Json document = to_json(*make_plan(request));
  EXPECT_EQ(document["schema"], Json("plimsoll.plan/1"));
  ASSERT_EQ(document["rows"].size(), 8U);
  const Json& row = document["rows"].items()[0];
  EXPECT_EQ(row["model"], Json("Llama 3.1 8B"));
  EXPECT_EQ(row["weights_dtype"], Json("bf16"));
  EXPECT_EQ(row["gpu"], Json::object({{"count", 1}, {"memory_bytes", 24'000'000'000}}));
  EXPECT_EQ(row["kv_cache_dtype"], Json("bf16"));
  EXPECT_EQ(row["weights_bytes"], Json(16'060'522'496));
  EXPECT_EQ(row["kv_cache_bytes"], Json(4'019'477'504));
  EXPECT_EQ(row["kv_tokens"], Json(30'666));
  EXPECT_EQ(row["max_model_len"], Json(8192));
  EXPECT_NEAR(*row["max_concurrency"].as_double(), 3.743, 0.001);
  EXPECT_EQ(document["rows"].items()[6]["kv_cache_dtype"], Json("fp8"));
  EXPECT_EQ(document["rows"].items()[7]["weights_dtype"], Json("int4"));
  EXPECT_EQ(document["models"].items()[0]["kv_bytes_per_token_without_gqa"], Json(524'288));
  EXPECT_EQ(document["models"].items()[1]["parameters"], Json(70'553'706'496));
}

TEST(SimpleRow, OfOneModel) {
  auto request = request_for("any", "80GB:2", "meta-llama/Llama-3.1-70B");
  request.is_simple = true;
  request.settings.quantization = memory::WeightFormat::kFp8;
  request.settings.kv_cache_dtype = "fp8";
  request.settings.max_model_len = 8192;
  const Json row = row_of(request);
  EXPECT_EQ(row["kv_tokens"], Json(443'398));
  EXPECT_EQ(row["fits"], Json(true));
}

// The memory table of the third document; weights in GB, KV per token in KiB, at 128K in GiB.
TEST(MemoryTable, RowsOfTheLlamas) {
  struct Line {
    const char* id;
    int fp16, int8, int4, kib, gib;
  };
  for (const Line& line : {Line{"meta-llama/Llama-3.1-8B", 16, 8, 4, 128, 16},
                           Line{"meta-llama/Llama-3.3-70B-Instruct", 141, 71, 35, 320, 40}}) {
    const auto gb = [&](memory::WeightFormat format) {
      auto request = request_for("any", "1000GB", line.id);
      request.settings.quantization = format;
      return static_cast<int>((*row_of(request)["weights_bytes_per_gpu"].as_integer() + kGB / 2) / kGB);
    };
    EXPECT_EQ(gb(memory::WeightFormat::kFloat16), line.fp16);
    EXPECT_EQ(gb(memory::WeightFormat::kInt8), line.int8);
    EXPECT_EQ(gb(memory::WeightFormat::kInt4), line.int4);
    const Json row = row_of(request_for("any", "1000GB", line.id));
    EXPECT_EQ(*row["kv_bytes_per_token_per_gpu"].as_integer(), line.kib * kKiB);
    EXPECT_EQ(*row["kv_bytes_per_request_per_gpu"].as_integer(), line.gib * kGiB);  // at 131,072 tokens
  }
}

TEST(EngineAny, SpreadsOverGpusAndOffersLevers) {
  auto request = request_for("any", "H100:4", "meta-llama/Llama-3.1-70B");
  request.settings.max_model_len = 8192;
  const Json row = row_of(request);
  EXPECT_EQ(row["gpu"]["name"], Json("H100-SXM5-80GB"));
  EXPECT_EQ(row["weights_bytes_per_gpu"], Json(141'107'412'992 / 4));
  EXPECT_EQ(row["kv_bytes_per_token_per_gpu"], Json(327'680 / 4));
  EXPECT_EQ(row["fits"], Json(true));
  std::vector<std::string> ids;
  for (const Json& lever : row["levers"].items()) {
    ids.push_back(*lever["id"].as_string());
    EXPECT_TRUE(lever["flag"].is_string());
    EXPECT_TRUE(lever["caution"].is_string());
    EXPECT_GT(*lever["requests_after"].as_double(), *lever["requests_before"].as_double()) << ids.back();
  }
  EXPECT_EQ(ids, (std::vector<std::string>{"max_model_len", "kv_cache_dtype", "quantization", "gpus"}));
}

TEST(EnginePlimsoll, RowHasTheContractsFields) {
  auto request = request_for("plimsoll", "24GB");
  request.settings.max_model_len = 8192;
  const auto plan = make_plan(request);
  ASSERT_TRUE(plan);
  const Json document = to_json(*plan);
  EXPECT_EQ(document["engine"]["name"], Json("plimsoll"));
  const Json& row = document["rows"].items()[0];
  for (const char* key : {"model",
                          "gpu",
                          "tensor_parallel",
                          "pipeline_parallel",
                          "data_parallel",
                          "expert_parallel",
                          "decode_context_parallel",
                          "budget_bytes_per_gpu",
                          "weights_bytes_per_gpu",
                          "kv_cache_bytes_per_gpu",
                          "kv_bytes_per_token_per_gpu",
                          "block_size",
                          "num_blocks",
                          "kv_tokens",
                          "max_model_len",
                          "max_concurrency",
                          "fits",
                          "estimated_max_model_len",
                          "error_bar_bytes",
                          "memory",
                          "ranks",
                          "engine_message",
                          "load_time_s",
                          "performance",
                          "command",
                          "findings",
                          "bytes_per_block",
                          "kv_groups",
                          "kv_bytes_per_request_per_gpu",
                          "log_line",
                          "levers",
                          "required_kv_cache_bytes_per_gpu"})
    EXPECT_TRUE(row.contains(key)) << key;
  EXPECT_EQ(row["weights_bytes_per_gpu"], Json(16'060'522'496));
  EXPECT_EQ(row["bytes_per_block"], Json(2'097'152));
  EXPECT_EQ(*row["kv_tokens"].as_integer(), *row["num_blocks"].as_integer() * 16);
  EXPECT_EQ(*row["kv_cache_bytes_per_gpu"].as_integer(), *row["num_blocks"].as_integer() * 2'097'152);
  EXPECT_EQ(document["basis"]["/rows/0/weights_bytes_per_gpu"]["kind"], Json("formula"));
  std::int64_t sum = 0;
  for (const Json& part : row["memory"].items()) {
    sum += *part["bytes"].as_integer();
    if (part["bytes"] == Json(0)) {
      EXPECT_TRUE(part["why"].is_string()) << dump(part);
    }
  }
  EXPECT_EQ(sum, *row["budget_bytes_per_gpu"].as_integer());
  EXPECT_EQ(*row["log_line"].as_string(),
            "CPU KV cache size: 32,768 tokens, Maximum concurrency for 8,192 tokens per request: 4.00x");
}

TEST(EnginePlimsoll, APoolThatIsGivenNeedsNoGpu) {
  auto request = request_for("plimsoll", "");
  request.settings.max_model_len = 1024;
  request.settings.kv_cache_bytes = Bytes(100 * 2'097'152 + 5);
  const Json row = row_of(request);
  EXPECT_TRUE(row["gpu"]["name"].is_null());
  EXPECT_TRUE(row["budget_bytes_per_gpu"].is_null());
  EXPECT_EQ(row["num_blocks"], Json(100));
  EXPECT_EQ(row["error_bar_bytes"], Json(0));
  EXPECT_EQ(row["kv_tokens"], Json(1600));
  EXPECT_EQ(row["estimated_max_model_len"], Json(1600));
}

TEST(EnginePlimsoll, ARefusalIsAPlanWithItsNumbers) {
  auto request = request_for("plimsoll", "");
  request.settings.kv_cache_bytes = Bytes(100 * 2'097'152);
  const auto plan = make_plan(request);
  ASSERT_TRUE(plan);
  EXPECT_FALSE(plan->fits());
  const Json row = row_of(request);
  EXPECT_EQ(row["fits"], Json(false));
  for (const char* key : {"num_blocks", "kv_tokens", "max_concurrency", "log_line"})
    EXPECT_TRUE(row[key].is_null()) << key;
  EXPECT_EQ(row["estimated_max_model_len"], Json(1600));
  EXPECT_EQ(row["kv_cache_bytes_per_gpu"], Json(100 * 2'097'152));
  EXPECT_EQ(row["required_kv_cache_bytes_per_gpu"], Json(8192 * std::int64_t{2'097'152}));
  EXPECT_NE(row["engine_message"].as_string()->find("(131072)"), std::string::npos);
  EXPECT_NE(to_text(*plan).find("does not fit"), std::string::npos);
}

TEST(EnginePlimsoll, AutoTakesTheLongestThatFits) {
  auto request = request_for("plimsoll", "");
  request.settings.kv_cache_bytes = Bytes(100 * 2'097'152);
  request.settings.longest_model_len = true;
  const Json row = row_of(request);
  EXPECT_EQ(row["fits"], Json(true));
  EXPECT_EQ(row["max_model_len"], Json(1600));
}

TEST(EnginePlimsoll, StoredBytesGoBeforeTheFormula) {
  auto request = request_for("plimsoll", "24GB");
  request.settings.max_model_len = 1024;
  request.models[0].stored_weights = Bytes(9'000'000'000);
  const auto plan = make_plan(request);
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->rows[0].weights.value, 9'000'000'000);
  EXPECT_TRUE(to_json(*plan)["basis"]["/rows/0/weights_bytes_per_gpu"].is_null());
}

// A table over many models leaves out what cannot be planned, and says why; one that was asked for is
// refused.
TEST(Catalogue, LeavesOutWhatCannotBePlanned) {
  auto request = request_for("vllm", "H100");
  request.models.push_back(catalogued("meta-llama/Llama-3.1-70B"));
  request.models.back().spec.has_all_weights = false;
  request.models.back().declared_weights.reset();
  const auto both = make_plan(request);  // of several that are named, it has a row that says so
  ASSERT_TRUE(both);
  EXPECT_EQ(both->rows.at(1).findings.at(0).id, "NOT_PLANNED");
  request.is_fit = true;
  const auto plan = make_plan(request);
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->rows.size(), 1U);
  ASSERT_EQ(plan->findings.size(), 1U);
  EXPECT_EQ(plan->findings[0].id, "MODELS_LEFT_OUT");
  EXPECT_NE(plan->findings[0].message.find("meta-llama/Llama-3.1-70B"), std::string::npos);
}

TEST(Engines, ADefaultIsSaid) {
  auto request = request_for("vllm", "H100");
  request.engine.is_default = true;
  const auto plan = make_plan(request);
  ASSERT_TRUE(plan);
  const Json engine = to_json(*plan)["engine"];
  EXPECT_EQ(engine["default"], Json(true));
  EXPECT_EQ(engine["version"], Json(facts::parse_engine("vllm")->version));
  EXPECT_NE(
      to_text(*plan).find("engine vllm " + facts::parse_engine("vllm")->version + " (the newest known)"),
      std::string::npos);
}

TEST(Settings, ThatMakeNoSenseAreRefused) {
  const auto code = [](auto change, const char* engine = "plimsoll", const char* gpu = "24GB") {
    auto request = request_for(engine, gpu);
    request.settings.max_model_len = 1024;
    change(request.settings);
    const auto plan = make_plan(request);
    return plan ? ErrorCode::kInternal : plan.error().code;
  };
  EXPECT_EQ(code([](Settings& s) { s.kv_cache_dtype = "fp8_e5m2"; }), ErrorCode::kUnsupported);
  EXPECT_EQ(code([](Settings& s) { s.kv_cache_dtype = "x"; }), ErrorCode::kUsage);
  EXPECT_EQ(code([](Settings& s) { s.dtype = "int3"; }), ErrorCode::kUsage);
  EXPECT_EQ(code([](Settings& s) { s.kv_cache_dtype = "x"; }, "any"), ErrorCode::kUsage);
  EXPECT_EQ(code([](Settings&) {}, "any", ""), ErrorCode::kUsage);
  EXPECT_EQ(code([](Settings&) {}, "plimsoll", "24GB:2"), ErrorCode::kUnsupported);
  EXPECT_EQ(code([](Settings& s) { s.max_model_len = 200'000; }), ErrorCode::kUsage);
}

TEST(Targets, AreNamesOrSizes) {
  EXPECT_EQ(parse_target("24GB:2")->memory.value, 24 * kGB);
  EXPECT_EQ(parse_target("24GB:2")->count, 2);
  EXPECT_EQ(parse_target("22.05GiB")->memory.value, 23'676'007'219);
  EXPECT_EQ(parse_target("H100:8")->count, 8);
  EXPECT_EQ(parse_target("4090")->name, "RTX-4090");
  for (const char* text :
       {"", ":", "24GB:", "24GB:0", "24GB:x", "0GB", "A100", "H100:-1", "H100:999999999999", "M4 Max"})
    EXPECT_FALSE(parse_target(text)) << text;
}

TEST(Plan, AModelWithoutALengthIsTheConfigsFault) {
  auto request = request_for("any", "24GB");
  request.models.front().spec.native_context_tokens = 0;
  request.models.front().spec.extended_context_tokens = 0;
  request.models.front().default_length = 0;
  const auto plan = make_plan(request);
  ASSERT_FALSE(plan);
  EXPECT_EQ(plan.error().code, ErrorCode::kMalformed);
  EXPECT_EQ(plan.error().where, "config.json");
  request.settings.max_model_len = 0;
  const auto asked = make_plan(request);
  ASSERT_FALSE(asked);
  EXPECT_EQ(asked.error().code, ErrorCode::kUsage);
}

TEST(Targets, ThisMachine) {
  Machine machine;
  EXPECT_FALSE(target_here(machine));
  machine.memory_total = Bytes(24 * kGiB);
  machine.memory_available = Bytes(20 * kGiB);
  machine.cpu_model = "Some CPU";
  const auto target = target_here(machine);
  ASSERT_TRUE(target);
  EXPECT_EQ(target->name, "Some CPU");
  auto request = request_for("plimsoll", "");
  request.targets.push_back(*target);
  request.settings.max_model_len = 1024;
  const Json row = row_of(request);
  EXPECT_EQ(row["gpu"]["memory_bytes"], Json(24 * kGiB));
  EXPECT_EQ(row["budget_bytes_per_gpu"], Json(static_cast<std::int64_t>(20.0 * kGiB * 0.92)));
}

// The worked case of docs/formulas/context.md: inspect, plan and tokens count have one default.
TEST(EngineAny, TakesTheLengthThatVllmTakes) {
  const auto config = parse_json(
      R"({"architectures":["LlamaForCausalLM"],"model_type":"llama","hidden_size":64,"num_hidden_layers":4,
      "num_attention_heads":8,"num_key_value_heads":2,"intermediate_size":128,"vocab_size":320,
      "max_position_embeddings":2048,"torch_dtype":"bfloat16",
      "rope_scaling":{"rope_type":"yarn","factor":4.0,"original_max_position_embeddings":2048}})",
      "config.json");
  ASSERT_TRUE(config);
  Model model;
  model.source = "made";
  model.spec = *model::read_spec(*config, "config.json");
  read_declared(*config, std::nullopt, model);
  for (const auto& [engine, length] : {std::pair("any", 2048), std::pair("plimsoll", 8192)}) {
    Request request;
    request.engine = *facts::parse_engine(engine);
    request.models.push_back(model);
    request.targets.push_back(*parse_target("24GB"));
    const Json row = row_of(request);
    EXPECT_EQ(row["max_model_len"], Json(length)) << engine;
    EXPECT_EQ(finding_of(row, "CTX_EXTENDED") != nullptr, length == 8192);
  }
}

// A declaration with more patterns than can be held against the weights: no figure, and no waiting for one.
TEST(EngineAny, RefusesMoreRulesThanCanBeTried) {
  const auto declared_with = [](int num_patterns) {
    Json::Array ignore;
    for (int i = 0; i < num_patterns; ++i) ignore.push_back("re:.*lm_head" + std::to_string(i) + ".*");
    Json config = *parse_json(
        R"({"architectures":["LlamaForCausalLM"],"model_type":"llama","hidden_size":64,
        "num_hidden_layers":4096,"num_attention_heads":8,"num_key_value_heads":2,"intermediate_size":128,
        "vocab_size":320,"max_position_embeddings":2048,"torch_dtype":"bfloat16"})",
        "config.json");
    config.set("quantization_config",
               Json::object({{"quant_method", "fp8"}, {"ignored_layers", Json(std::move(ignore))}}));
    Model model;
    model.spec = *model::read_spec(config, "config.json");
    read_declared(config, model::read_quantization(config, {}), model);
    return model.declared_weights;
  };
  EXPECT_EQ(declared_with(1000), std::nullopt);
}

// One formula: what inspect prints for a config alone is what plan counts with.
TEST(EngineAny, CountsAPlainCheckpointAsInspectDoes) {
  const Model model = catalogued("meta-llama/Llama-3.1-8B");
  const auto stored = memory::stored_checkpoint(model.spec, std::nullopt);
  ASSERT_TRUE(stored.has_value());
  EXPECT_EQ(model.declared_weights, stored->bytes);
  // Corrections of routers are kept in f32 whatever the model's type is.
  const Model mixture = catalogued("moonshotai/Kimi-K2-Instruct");
  EXPECT_EQ(mixture.declared_weights.has_value(), true);
}

// As inspect does: 16 bits are counted, and nobody knows that they are not 32.
TEST(EngineAny, ADtypeThatNobodyNames) {
  for (const char* quantization : {"", R"(,"quantization_config":{"quant_method":"fp8"})"}) {
    const Json config = *parse_json(
        std::string(R"({"architectures":["LlamaForCausalLM"],"model_type":"llama","hidden_size":64,
        "num_hidden_layers":4,"num_attention_heads":8,"num_key_value_heads":2,"intermediate_size":128,
        "vocab_size":320,"max_position_embeddings":2048)") +
            quantization + "}",
        "config.json");
    Model model;
    model.source = "made";
    model.spec = *model::read_spec(config, "config.json");
    read_declared(config, model::read_quantization(config, {}), model);
    ASSERT_TRUE(model.most_declared) << quantization;
    Request request;
    request.engine = *facts::parse_engine("any");
    request.models.push_back(model);
    request.targets.push_back(*parse_target("24GB"));
    const Json document = to_json(*make_plan(request));
    const Json& row = document["rows"].items()[0];
    EXPECT_NE(finding_of(row, "DTYPE_ASSUMED"), nullptr) << quantization;
    const Json& basis = document["basis"]["/rows/0/weights_bytes_per_gpu"];
    EXPECT_EQ(basis["kind"], Json("assumed"));
    EXPECT_EQ(basis["low"].as_double(), row["weights_bytes_per_gpu"].as_double());
    EXPECT_EQ(basis["high"].as_double(), static_cast<double>(model.most_declared->value));
  }
}

}  // namespace
}  // namespace plimsoll::plan
