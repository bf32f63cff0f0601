// SPDX-License-Identifier: Apache-2.0
// `plan`: flags -> plan room -> print.
#include <CLI/CLI.hpp>
#include <memory>

#include "artifact/artifact.h"
#include "base/log.h"
#include "base/machine.h"
#include "cli/llama_cpp_flags.h"
#include "cli/model_argument.h"
#include "cli/verbs.h"
#include "memory/memory.h"
#include "model/declarations.h"
#include "plan/plan.h"

namespace plimsoll::cli {
namespace {

/// Flags of vLLM that reach its arithmetic, under vLLM's names.
struct VllmFlags {
  std::optional<int> tensor_parallel;
  int pipeline_parallel = 1, decode_context_parallel = 1;
  bool is_expert_parallel = false, has_no_async = false, is_eager = false, is_language_only = false;
  std::optional<bool> prefix_caching, disables_hybrid_manager;
  std::string state_mode, state_dtype, index_dtype, prefill_backend, speculative;
};

struct PlanFlags {
  CommonFlags common;
  std::string model, engine, accounting;
  std::vector<std::string> gpus;
  bool is_here = false;
  std::string max_model_len, kv_cache_bytes, num_blocks, block_size, max_num_seqs, max_num_batched_tokens,
      threads;
  std::string kv_cache_dtype = "auto", dtype = "auto", quantization;
  std::string gpu_memory, gpu_free;
  std::optional<double> utilization;
  VllmFlags vllm;
  LlamaCppFlags llama_cpp;
};

Result<std::optional<std::int64_t>> size_of(const std::string& text, const char* flag) {
  if (text.empty()) return std::optional<std::int64_t>();
  const auto value = parse_size(text);
  if (!value)
    return fail(ErrorCode::kUsage, "\"" + text.substr(0, 60) + "\" is no number or size", flag,
                "for example 4096, 32K, 500MB or 4GiB");
  return value;
}

Result<std::optional<int>> count_of(const std::string& text, const char* flag) {
  PLIMSOLL_TRY(const auto value, size_of(text, flag));
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

Status add_vllm_settings(const VllmFlags& flags, plan::Settings& settings) {
  settings.tensor_parallel = flags.tensor_parallel;
  settings.pipeline_parallel = flags.pipeline_parallel;
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
  PLIMSOLL_TRY(settings.num_speculative_tokens, drafts_of(flags.speculative));
  return {};
}

Result<plan::Settings> settings_of(const PlanFlags& flags) {
  plan::Settings settings;
  if (flags.max_model_len == "auto" || flags.max_model_len == "-1") {
    settings.longest_model_len = true;
  } else {
    PLIMSOLL_TRY(settings.max_model_len, size_of(flags.max_model_len, "--max-model-len"));
  }
  PLIMSOLL_TRY(const auto bytes, size_of(flags.kv_cache_bytes, "--kv-cache-memory-bytes"));
  if (bytes) settings.kv_cache_bytes = Bytes(*bytes);
  PLIMSOLL_TRY(settings.num_blocks, size_of(flags.num_blocks, "--num-gpu-blocks-override"));
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
  if (!flags.quantization.empty()) {
    settings.quantization = memory::parse_weight_format(flags.quantization);
    if (!settings.quantization)
      return fail(ErrorCode::kUsage,
                  "\"" + flags.quantization + "\" is no format that weights are counted in", "--quantization",
                  "fp8, int8 or int4");
  }
  return settings;
}

Result<plan::Model> model_of(const PlanFlags& flags) {
  const std::string& text = flags.model;
  PLIMSOLL_TRY(const auto artifact,
               artifact::open(text, open_options(flags.common, artifact::Need::kHeaders)));
  if (auto error = artifact::first_error(artifact->findings())) return fail(std::move(*error));
  plan::Model model;
  model.source = text;
  PLIMSOLL_TRY(model.spec, model::read_spec(*artifact));
  const facts::CatalogueEntry* known = facts::find_catalogue(text);
  model.title = !model.spec.name.empty() ? model.spec.name : known ? std::string(known->title) : text;
  for (const Finding& finding : artifact->findings()) log_info(finding.id + ": " + finding.message);
  model.stored_weights = memory::stored_weights_bytes(*artifact, model.spec);
  if (artifact->form() == artifact::Form::kGguf)
    model.gguf_weights = memory::llama_cpp_weights(*artifact, model.spec);
  else
    plan::read_declared(artifact->config(), model::declared_quantization(*artifact), model);
  return model;
}

// Whoever names a GPU does not ask about a CPU engine.
std::string default_engine(const PlanFlags& flags) {
  return flags.gpus.empty() || flags.is_here ? "plimsoll" : "any";
}

// A table of what fits has rows of models that can be counted, and that the engine runs.
bool can_be_planned(const plan::Model& model, const facts::EngineChoice& engine) {
  if (engine.name == facts::EngineName::kPlimsoll) return memory::check_embedded(model.spec).has_value();
  return model.spec.quantization.empty() ? model::count_parameters(model.spec).has_value()
                                         : model.declared_weights.has_value();
}

// What the driver reports, where the catalogue's figure is not this machine's.
Status override_memory(const PlanFlags& flags, std::vector<plan::Target>& targets) {
  PLIMSOLL_TRY(const auto memory, size_of(flags.gpu_memory, "--gpu-memory-bytes"));
  PLIMSOLL_TRY(const auto free, size_of(flags.gpu_free, "--gpu-free-bytes"));
  if (memory && *memory < 1)
    return fail(ErrorCode::kUsage, "a GPU without memory holds nothing", "--gpu-memory-bytes",
                "give its bytes");
  if (memory && targets.empty()) targets.emplace_back();
  for (plan::Target& target : targets) {
    if (memory) target.memory = Bytes(*memory);
    if (free) target.available = Bytes(*free);
    if (target.available && *target.available > target.memory)
      return fail(ErrorCode::kUsage, "more memory is free than there is", "--gpu-free-bytes",
                  "give what is free on one GPU");
  }
  return {};
}

Result<plan::Request> request_of(const PlanFlags& flags) {
  plan::Request request;
  PLIMSOLL_TRY(request.engine,
               facts::parse_engine(flags.engine.empty() ? default_engine(flags) : flags.engine));
  request.is_simple = flags.accounting == "simple";
  PLIMSOLL_TRY(request.settings, settings_of(flags));
  const Machine machine = read_machine();
  request.machine_threads = machine.num_cpus;
  for (const std::string& text : flags.gpus) {
    PLIMSOLL_TRY(plan::Target target, plan::parse_target(text));
    request.targets.push_back(std::move(target));
  }
  PLIMSOLL_TRY_VOID(override_memory(flags, request.targets));
  // The pool's size stands in for the memory's, so that neither is needed then.
  const bool pool_is_given = request.settings.kv_cache_bytes || request.settings.num_blocks;
  if (flags.is_here || (flags.gpus.empty() && !pool_is_given && !request.is_simple)) {
    PLIMSOLL_TRY(plan::Target here, plan::target_here(machine));
    request.targets.push_back(std::move(here));
  }
  if (!flags.model.empty()) {
    PLIMSOLL_TRY(plan::Model model, model_of(flags));
    request.models.push_back(std::move(model));
  } else if (!request.is_simple) {
    for (const facts::CatalogueEntry& entry : facts::catalogue()) {
      PLIMSOLL_TRY(plan::Model model, plan::catalogue_model(entry));
      if (can_be_planned(model, request.engine)) request.models.push_back(std::move(model));
    }
  }
  return request;
}

int run_plan(PlanFlags& flags) {
  if (flags.model.empty()) flags.model.swap(flags.common.lock);
  const auto request = request_of(flags);
  if (!request) return report_error(flags.common, request.error());
  const auto plan = plan::make_plan(*request);
  if (!plan) return report_error(flags.common, plan.error());
  const std::string text = flags.common.is_json() ? dump_pretty(plan::to_json(*plan)) : plan::to_text(*plan);
  if (const auto written = write_output(flags.common, text); !written)
    return report_error(flags.common, written.error());
  return plan->fits() ? 0 : exit_status(ErrorCode::kNo);
}

void add_vllm_flags(CLI::App& verb, VllmFlags& flags) {
  constexpr int kMost = 1024;
  const auto count = CLI::Range(1, kMost);
  verb.add_option("--tensor-parallel-size", flags.tensor_parallel, "ranks that split every layer")
      ->check(count);
  verb.add_option("--pipeline-parallel-size", flags.pipeline_parallel, "stages of layers")->check(count);
  verb.add_option("--decode-context-parallel-size", flags.decode_context_parallel,
                  "ranks that split a sequence")
      ->check(count);
  verb.add_flag("--enable-expert-parallel", flags.is_expert_parallel, "whole experts to ranks");
  verb.add_flag("--enable-prefix-caching,!--no-enable-prefix-caching", flags.prefix_caching,
                "keep what prefixes left in the cache");
  verb.add_flag("--disable-hybrid-kv-cache-manager,!--no-disable-hybrid-kv-cache-manager",
                flags.disables_hybrid_manager, "layers with windows keep all tokens");
  verb.add_flag("--enforce-eager", flags.is_eager, "no CUDA graphs");
  verb.add_flag("--language-model-only", flags.is_language_only, "encoders are not run");
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

void add_flags(CLI::App& verb, PlanFlags& flags) {
  verb.add_option("MODEL", flags.model,
                  std::string(kModelHelp) + "; without it: the whole built-in catalogue");
  verb.add_option("--engine", flags.engine,
                  "plimsoll (this program's own, on the CPU), any (the formula alone), vllm[@VERSION], "
                  "sglang or llama.cpp. "
                  "Default: any with --gpu, plimsoll on this machine");
  verb.add_option("--accounting", flags.accounting, "simple: memory x share - weights - reserve, GB = 10^9")
      ->check(CLI::IsMember({"simple"}));
  verb.add_option("--gpu", flags.gpus, "NAME[:N] or a size with its unit, 24GB[:N]; may be given again");
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
  verb.add_option("--threads", flags.threads, "worker threads of the embedded engine (one per core)");
  add_vllm_flags(verb, flags.vllm);
  add_llama_cpp_flags(verb, flags.llama_cpp);
}

}  // namespace

Verb add_plan(CLI::App& app) {
  auto flags = std::make_shared<PlanFlags>();
  CLI::App* verb =
      app.add_subcommand("plan", "how many tokens and requests fit, and what would make more fit");
  add_common_flags(*verb, flags->common);
  add_flags(*verb, *flags);
  verb->footer(
      std::string("Examples:\n"
                  "  plimsoll plan ./my-model --here\n"
                  "  plimsoll plan meta-llama/Llama-3.1-8B --gpu 24GB --max-model-len 8192\n"
                  "  plimsoll plan meta-llama/Llama-3.1-70B --engine any --gpu H100:4 --format json\n"
                  "  plimsoll plan --accounting simple\n"
                  "Exit status: 0 it fits, 1 it does not, 2 usage, 3 unreadable, 4 not supported.") +
      kModelEnvironment);
  return make_verb(verb, flags, run_plan);
}

}  // namespace plimsoll::cli
