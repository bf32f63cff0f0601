// SPDX-License-Identifier: Apache-2.0
// `plan`: flags -> plan room -> print.
#include <CLI/CLI.hpp>
#include <memory>
#include <utility>

#include "artifact/artifact.h"
#include "base/log.h"
#include "base/machine.h"
#include "base/nvidia_smi.h"
#include "cli/model_argument.h"
#include "cli/plan_flags.h"
#include "cli/verbs.h"
#include "model/declarations.h"
#include "plan/plan.h"

namespace plimsoll::cli {
namespace {

Result<plan::Model> model_of(const std::string& text, const CommonFlags& common) {
  PLIMSOLL_TRY(const auto artifact, artifact::open(text, open_options(common, artifact::Need::kHeaders)));
  if (auto error = artifact::first_error(artifact->findings())) return fail(std::move(*error));
  plan::Model model;
  model.source = text;
  PLIMSOLL_TRY(model.spec, model::read_spec(*artifact));
  const facts::CatalogueEntry* known = facts::find_catalogue(text);
  model.title = !model.spec.name.empty() ? model.spec.name : known ? std::string(known->title) : text;
  for (const Finding& finding : artifact->findings()) log_info(finding.id + ": " + finding.message);
  model.stored_weights = memory::stored_weights_bytes(*artifact, model.spec);
  if (model.stored_weights)
    for (const auto format : {memory::WeightFormat::kInt8, memory::WeightFormat::kInt4})
      model.loaded_weights.emplace(format, memory::loaded_weights_bytes(artifact.get(), model.spec, format));
  if (artifact->form() == artifact::Form::kGguf)
    model.gguf_weights = memory::llama_cpp_weights(*artifact, model.spec);
  else
    plan::read_declared(artifact->config(), model::declared_quantization(*artifact), model);
  return model;
}

// This machine's GPUs where it has any and the engine is for them; else its memory.
Result<plan::Target> here_for(const PlanFlags& flags, const Machine& machine) {
  if (!flags.engine.starts_with("plimsoll"))
    if (auto gpus = plan::target_of(facts::parse_nvidia_smi(nvidia_smi_output()))) return *gpus;
  return plan::target_here(machine);
}

// GPUs and pools are vLLM's, whose newest release is taken; a machine without GPUs runs our own engine.
Result<facts::EngineChoice> engine_of(const PlanFlags& flags, bool is_here) {
  PLIMSOLL_TRY(facts::EngineChoice engine, facts::parse_engine(!flags.engine.empty()          ? flags.engine
                                                               : flags.accounting == "simple" ? "any"
                                                               : is_here                      ? "plimsoll"
                                                                                              : "vllm"));
  engine.is_default = flags.engine.empty();
  return engine;
}

// What the driver reports, where the catalogue's figure is not this machine's.
Status override_memory(const PlanFlags& flags, std::vector<plan::Target>& targets) {
  PLIMSOLL_TRY(const auto memory, plan_size(flags.gpu_memory, "--gpu-memory-bytes"));
  PLIMSOLL_TRY(const auto free, plan_size(flags.gpu_free, "--gpu-free-bytes"));
  if (memory && *memory < 1)
    return fail(ErrorCode::kUsage, "a GPU without memory holds nothing", "--gpu-memory-bytes",
                "give its bytes");
  if (memory && targets.empty()) targets.emplace_back().is_count_given = false;
  for (plan::Target& target : targets) {
    if ((memory || free) && !target.beside.empty())
      return fail(ErrorCode::kUsage, "GPUs of several kinds do not have one size",
                  memory ? "--gpu-memory-bytes" : "--gpu-free-bytes", "give sizes as --gpu 22GiB,10GiB");
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
  request.is_simple = flags.accounting == "simple";
  PLIMSOLL_TRY(request.settings, plan_settings(flags));
  const Machine machine = read_machine();
  request.machine_threads = machine.cores.usable;
  for (const std::string& text : flags.gpus) {
    PLIMSOLL_TRY(plan::Target target, plan::parse_target(text));
    request.targets.push_back(std::move(target));
  }
  for (const std::string& price : flags.prices) PLIMSOLL_TRY_VOID(plan::add_price(price, request.targets));
  PLIMSOLL_TRY_VOID(override_memory(flags, request.targets));
  request.is_search = flags.is_search;
  if (flags.models.empty() && (flags.is_search || !flags.against.empty()))
    return fail(ErrorCode::kUsage, "a model is needed here", "MODEL", "name one, for example Qwen/Qwen3-8B");
  if (flags.models.size() > 1 && !flags.common.lock.empty())
    return fail(ErrorCode::kUsage, "one lock record is of one model", "--lock", "name one MODEL");
  // The pool's size stands in for the memory's, so that neither is needed then.
  const bool pool_is_given = request.settings.kv_cache_bytes || request.settings.num_blocks;
  if (request.is_search && request.targets.empty() && !flags.is_here && !pool_is_given)
    request.targets = plan::catalogue_targets();
  const bool is_here = flags.is_here || (request.targets.empty() && !pool_is_given && !request.is_simple);
  if (is_here) {
    PLIMSOLL_TRY(plan::Target here, here_for(flags, machine));
    request.targets.push_back(std::move(here));
  }
  PLIMSOLL_TRY(request.engine, engine_of(flags, is_here && request.targets.back().is_here));
  if (!flags.against.empty()) {
    PLIMSOLL_TRY(request.against, facts::parse_engine(flags.against));
  }
  for (const std::string& text : flags.models) {
    PLIMSOLL_TRY(plan::Model model, model_of(text, flags.common));
    request.models.push_back(std::move(model));
  }
  if (request.models.empty() && !request.is_simple) {
    for (const facts::CatalogueEntry& entry : facts::catalogue()) {
      PLIMSOLL_TRY(plan::Model model, plan::catalogue_model(entry));
      request.models.push_back(std::move(model));
    }
    request.is_fit = true;
  }
  return request;
}

int run_plan(PlanFlags& flags) {
  // A lock record says by itself which model it is of.
  if (flags.models.empty() && !flags.common.lock.empty())
    flags.models.push_back(std::exchange(flags.common.lock, {}));
  const auto request = request_of(flags);
  if (!request) return report_error(flags.common, request.error());
  const auto plan = plan::make_plan(*request);
  if (!plan) return report_error(flags.common, plan.error());
  const std::string text = flags.common.is_json() ? dump_pretty(plan::to_json(*plan)) : plan::to_text(*plan);
  if (const auto written = write_output(flags.common, text); !written)
    return report_error(flags.common, written.error());
  return plan->fits() ? 0 : exit_status(ErrorCode::kNo);
}

}  // namespace

Verb add_plan(CLI::App& app) {
  auto flags = std::make_shared<PlanFlags>();
  CLI::App* verb =
      app.add_subcommand("plan", "how many tokens and requests fit, and what would make more fit");
  add_common_flags(*verb, flags->common);
  add_plan_flags(*verb, *flags);
  verb->footer(
      std::string("Examples:\n"
                  "  plimsoll plan ./my-model --here\n"
                  "  plimsoll plan meta-llama/Llama-3.1-8B --gpu 24GB --max-model-len 8192\n"
                  "  plimsoll plan meta-llama/Llama-3.1-70B --engine any --gpu H100:4 --format json\n"
                  "  plimsoll plan meta-llama/Llama-3.1-70B --gpu H100:8 --search --max-model-len 32768\n"
                  "  plimsoll plan Qwen/Qwen3-8B --gpu L40S --engine vllm@0.19.1 --against vllm@0.33.0\n"
                  "  plimsoll plan Qwen/Qwen3-8B Qwen/Qwen3-32B --gpu H100 --gpu L40S:2\n"
                  "  plimsoll plan --here\n"
                  "  plimsoll plan --accounting simple\n"
                  "Exit status: 0 it fits, 1 it does not, 2 usage, 3 unreadable, 4 not supported.") +
      kModelEnvironment);
  return make_verb(verb, flags, run_plan);
}

}  // namespace plimsoll::cli
