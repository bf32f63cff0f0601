// SPDX-License-Identifier: Apache-2.0
// A row for llama.cpp: buffers on each device, the context that they hold, and the engine's own lines.
#include <fmt/format.h>

#include <algorithm>

#include "memory/memory.h"
#include "plan/llama_cpp_bill.h"
#include "plan/rows.h"

namespace plimsoll::plan {
namespace {

constexpr const char* kSource = "docs/formulas/llama_cpp.md";
constexpr std::int64_t kStep = 256;  // tokens between contexts that differ

double mib(Bytes bytes) {
  return static_cast<double>(bytes.value) / static_cast<double>(kMiB);
}

class LlamaCppRow {
 public:
  LlamaCppRow(const Question& question, const LlamaCppQuestion& asked) : question_(question), asked_(asked) {}

  Result<Row> answer() {
    Row row;
    PLIMSOLL_TRY(row.total_weights, weights_of(question_, row));
    std::int64_t length = length_of(question_);
    const std::int64_t most = std::max(length, question_.model->spec.context_tokens());
    PLIMSOLL_TRY(const std::int64_t longest, longest_context(most));
    if (question_.settings.longest_model_len && longest > 0) length = std::min(length, longest);
    PLIMSOLL_TRY(const LlamaCppBill bill, asked_.bill(length));
    fill(row, bill, length);
    if (longest > 0) row.estimated_max_model_len = Tokens(request_length(longest));
    return row;
  }

 private:
  // Each of the sequences has its own part of the context, unless they share it.
  std::int64_t request_length(std::int64_t context) const {
    const memory::LlamaCppContext& flags = asked_.context();
    if (flags.is_unified || flags.num_seqs == 1) return context;
    return (context / flags.num_seqs + kStep - 1) / kStep * kStep;
  }

  // Bytes only grow with the context, in whole steps of every sequence.
  Result<std::int64_t> longest_context(std::int64_t most) const {
    const std::int64_t step = kStep * (asked_.context().is_unified ? 1 : asked_.context().num_seqs);
    std::int64_t low = 0, high = (most + step - 1) / step;
    while (low < high) {
      const std::int64_t middle = (low + high + 1) / 2;
      PLIMSOLL_TRY(const LlamaCppBill bill, asked_.bill(middle * step));
      if (asked_.fits(bill))
        low = middle;
      else
        high = middle - 1;
    }
    return std::min(low * step, most);
  }

  void fill(Row& row, const LlamaCppBill& bill, std::int64_t length) const {
    const Model& model = *question_.model;
    const memory::LlamaCppContext& context = asked_.context();
    const LlamaCppDeviceBill& tightest = asked_.tightest(bill);
    row.model = model.source;
    row.title = model.title;
    row.target = question_.target;
    row.kv_cache_dtype = std::string(name(context.key_dtype));
    if (context.value_dtype != context.key_dtype)
      row.kv_cache_dtype += "/" + std::string(name(context.value_dtype));
    row.tensor_parallel = 1;
    row.fits = asked_.fits(bill);
    row.weights = tightest.model + tightest.repacked;
    if (asked_.model().is_stored) row.weights_basis.clear();
    row.budget = asked_.budget(bill);
    row.kv_cache = row.total_kv_cache = bill.cache.total();
    row.required_kv_cache = context.is_unified ? row.kv_cache : Bytes(row.kv_cache.value / context.num_seqs);
    row.kv_bytes_per_token = token_bytes(bill.cache);
    row.num_layers = static_cast<std::int64_t>(model.spec.layers.size());
    row.kv_tokens = Tokens(bill.cache.context_tokens);
    row.max_model_len = Tokens(request_length(length));
    row.max_concurrency =
        context.is_unified
            ? std::min<double>(context.num_seqs,
                               static_cast<double>(bill.cache.context_tokens) / static_cast<double>(length))
            : context.num_seqs;
    row.limited_by = "flag";
    row.buffers = llama_cpp_buffers(asked_, bill);
    row.devices = asked_.uses(bill);
    add_parts(row, bill);
    add_basis(row, bill);
    if (row.fits)
      row.log_line = log_lines(bill.cache);
    else
      row.engine_message = refusal(row, bill, length);
    add_findings(row);
    add_layout_finding(row, bill);
    add_command(row, length);
  }

  static Bytes token_bytes(const memory::LlamaCppCache& cache) {
    Bytes total;
    for (const memory::LlamaCppLayer& layer : cache.layers) {
      const std::int64_t cells =
          (layer.is_windowed ? cache.window_tokens : cache.sequence_tokens) * cache.num_streams;
      total += Bytes((layer.keys + layer.values).value / cells) +
               Bytes(layer.index_keys.value / (cache.sequence_tokens * cache.num_streams));
    }
    return total;
  }

  void add_parts(Row& row, const LlamaCppBill& bill) const {
    const LlamaCppDeviceBill& device = asked_.tightest(bill);
    const Bytes states = device.states;
    row.parts = {
        {"weights", row.weights,
         device.repacked > Bytes(0) ? "with a second copy that the CPU's kernels read" : ""},
        {"kv_cache", device.cache + states,
         states > Bytes(0) ? with_commas(states.value) + " bytes of it are recurrent states" : ""},
        {"activation", device.compute, "the compute buffer"},
        {"sampler", device.output,
         device.output > Bytes(0) ? "the output buffer" : "logits lie with the host"},
        {"attention_workspace", Bytes(0), "in the compute buffer"},
        {"moe_workspace", Bytes(0), "in the compute buffer"},
        {"cuda_graph", Bytes(0), bill.gpus.empty() ? "runs on the CPU" : "within the margin"},
        {"non_torch", Bytes(0),
         bill.gpus.empty() ? "within the margin" : "the driver's context: within the margin"},
        {"encoder", Bytes(0), "a file of its own (--mmproj), which is not counted"},
        {"processor_cache", Bytes(0), "no encoder"},
        {"draft", Bytes(0), "no draft model"},
        {"lora", Bytes(0), "no adapters"},
        {"margin", question_.rules.reserve_per_gpu, "what --fit leaves free on a device"},
    };
  }

  void add_basis(Row& row, const LlamaCppBill& bill) const {
    add_weights_basis(row, 1);
    row.basis.push_back(basis_with_bar(part_field(row, "activation"), "calibrated",
                                       asked_.tightest(bill).compute, bill.compute.band, kSource));
    for (std::size_t i = 0; i < row.buffers.size(); ++i) {
      const Buffer& buffer = row.buffers[i];
      const std::string field = "buffers/" + std::to_string(i) + "/bytes";
      if (buffer.kind == "compute")
        row.basis.push_back(basis_with_bar(field, "calibrated", buffer.bytes, bill.compute.band, kSource));
      if (buffer.kind == "model" && !row.weights_basis.empty())
        row.basis.push_back(basis_with_bar(field, row.weights_basis, buffer.bytes, row.weights_bar, kSource));
    }
    for (std::size_t i = 0; i < row.devices.size(); ++i)
      row.basis.push_back(basis_with_bar("devices/" + std::to_string(i) + "/used_bytes", "calibrated",
                                         row.devices[i].used, bill.compute.band, kSource));
    if (row.budget) row.basis.push_back({"estimated_max_model_len", "calibrated", {}, {}, kSource});
  }

  // As the engine prints them, without the functions' names.
  std::string log_lines(const memory::LlamaCppCache& cache) const {
    std::string lines;
    const auto count = [&](auto has) { return std::count_if(cache.layers.begin(), cache.layers.end(), has); };
    for (const bool is_windowed : {false, true}) {
      const auto layers = count([&](const memory::LlamaCppLayer& layer) {
        return layer.is_windowed == is_windowed && layer.keys > Bytes(0);
      });
      if (layers == 0) continue;
      const Bytes keys = cache.keys(is_windowed), values = cache.values(is_windowed);
      lines += fmt::format(
          "{}size = {:7.2f} MiB ({:6} cells, {:3} layers, {:2}/{} seqs), K ({}): {:7.2f} MiB, V ({}): "
          "{:7.2f} MiB",
          lines.empty() ? "" : "\n", mib(keys + values),
          is_windowed ? cache.window_tokens : cache.sequence_tokens, layers, asked_.context().num_seqs,
          cache.num_streams, name(asked_.context().key_dtype), mib(keys), name(asked_.context().value_dtype),
          mib(values));
    }
    const Bytes states = cache.convolutions() + cache.states();
    if (states > Bytes(0))
      lines += fmt::format(
          "{}size = {:7.2f} MiB ({:6} cells, {:3} layers, {:2} seqs  0 rs_seq), R (f32): {:7.2f} MiB, S "
          "(f32): "
          "{:7.2f} MiB, P (f32):    0.00 MiB",
          lines.empty() ? "" : "\n", mib(states), asked_.context().num_seqs, cache.layers.size(),
          asked_.context().num_seqs, mib(cache.convolutions()), mib(cache.states()));
    return lines;
  }

  // What --fit prints when lengths and layers are given; the engine then goes on until an allocation fails.
  std::string refusal(const Row& row, const LlamaCppBill& bill, std::int64_t length) const {
    if (question_.settings.kv_cache_bytes)
      return fmt::format("a cache of {} bytes is needed for a context of {} tokens, and {} are given",
                         with_commas(bill.cache.total().value), length,
                         with_commas(question_.settings.kv_cache_bytes.value_or(Bytes(0)).value));
    const bool is_hosts_fault =
        !bill.gpus.empty() && std::all_of(row.devices.begin(), row.devices.end() - 1,
                                          [](const DeviceUse& use) { return use.used <= *use.budget; });
    if (is_hosts_fault)
      return fmt::format("the host has to hold {} bytes, and {} are given",
                         with_commas(bill.host.total().value),
                         with_commas(question_.settings.llama_cpp.host_memory.value_or(Bytes(0)).value));
    Bytes over;
    if (bill.gpus.empty()) over = bill.host.total() - asked_.budget(bill).value_or(Bytes(0));
    for (std::size_t gpu = 0; gpu < bill.gpus.size(); ++gpu)
      over += bill.gpus[gpu].total() - asked_.gpus()[gpu].budget;
    if (over <= Bytes(0))
      return fmt::format("a device is {} MiB short, and the others have no place for its layers",
                         ((asked_.tightest(bill).total() - *row.budget).value + kMiB - 1) / kMiB);
    const std::int64_t margin = question_.rules.reserve_per_gpu.value / kMiB;
    const std::string target =
        bill.gpus.size() > 1
            ? fmt::format("cannot meet free memory targets on all devices, need to use {} MiB less in total",
                          std::max<std::int64_t>(0, over.value / kMiB))
            : fmt::format("cannot meet free memory target of {} MiB, need to reduce device memory by {} MiB",
                          margin, over.value / kMiB);
    return target + fmt::format("; context size set by user to {} -> no change", length);
  }

  void add_findings(Row& row) const {
    if (asked_.ignores_windows())
      row.findings.push_back(
          {"WINDOW_IGNORED", FindingLevel::kInfo, FindingKind::kCheckFailed, "config.json: /sliding_window",
           "llama.cpp does not read this architecture's window: every layer keeps all tokens",
           "nothing; the figures above are for that"});
    if (!question_.model->spec.encoders.empty())
      row.findings.push_back({"ENCODER_PROFILE", FindingLevel::kInfo, FindingKind::kCheckFailed,
                              "config.json",
                              "the model's encoder is a file of its own for llama.cpp (--mmproj) and is not "
                              "counted here",
                              "add that file's size, and its compute buffer"});
    if (!asked_.model().is_stored)
      row.findings.push_back({"NEEDS_GGUF", FindingLevel::kInfo, FindingKind::kCheckFailed,
                              question_.model->source,
                              "llama.cpp reads GGUF files; this counts what a converted file would hold",
                              "give the .gguf file as MODEL for its own bytes"});
  }

  // Where layers lie hangs on what is free, unless flags hold them.
  void add_layout_finding(Row& row, const LlamaCppBill& bill) const {
    const bool is_by_memory = question_.target && !question_.target->beside.empty() &&
                              question_.settings.llama_cpp.placement.split.empty();
    if (!bill.is_moved && !is_by_memory) return;
    std::vector<std::int64_t> layers;
    for (std::size_t i = 0; i < bill.gpus.size(); ++i) layers.push_back(row.devices[i].layers);
    const std::string counts = fmt::format("{}", fmt::join(layers, ","));
    row.findings.push_back(
        {bill.is_moved ? "LAYERS_MOVED" : "LAYERS_BY_FREE_MEMORY", FindingLevel::kInfo,
         FindingKind::kCheckFailed, "--tensor-split",
         (bill.is_moved ? "shares by free memory do not fit; --fit fills the GPUs with layers one by one: "
                        : "the GPUs' shares are what of them is free at the start; layers of each: ") +
             counts,
         "hold them with --tensor-split " + counts});
  }

  void add_command(Row& row, std::int64_t length) const {
    if (!row.fits || !asked_.model().is_stored) return;
    const memory::LlamaCppContext& context = asked_.context();
    const memory::LlamaCppPlacement& placement = question_.settings.llama_cpp.placement;
    row.command = {"llama-server",         "--model",    question_.model->source,         "--ctx-size",
                   std::to_string(length), "--parallel", std::to_string(context.num_seqs)};
    const auto add = [&](const char* flag, const std::string& value) {
      row.command.emplace_back(flag);
      if (!value.empty()) row.command.push_back(value);
    };
    const memory::LlamaCppContext plain;
    if (context.is_unified) add("--kv-unified", "");
    if (context.key_dtype != plain.key_dtype) add("--cache-type-k", std::string(name(context.key_dtype)));
    if (context.value_dtype != plain.value_dtype)
      add("--cache-type-v", std::string(name(context.value_dtype)));
    if (context.batch_tokens != plain.batch_tokens) add("--batch-size", std::to_string(context.batch_tokens));
    if (context.micro_batch_tokens != plain.micro_batch_tokens)
      add("--ubatch-size", std::to_string(context.micro_batch_tokens));
    if (!context.has_flash_attention) add("--flash-attn", "off");
    if (context.keeps_whole_windows) add("--swa-full", "");
    if (placement.gpu_layers >= 0) add("--n-gpu-layers", std::to_string(placement.gpu_layers));
    if (placement.cpu_expert_layers > 0) add("--n-cpu-moe", std::to_string(placement.cpu_expert_layers));
    for (const memory::LlamaCppOverride& override : placement.overrides)
      add("--override-tensor",
          override.pattern + "=" + (override.gpu < 0 ? "CPU" : "CUDA" + std::to_string(override.gpu)));
    if (!placement.split.empty()) add("--tensor-split", fmt::format("{}", fmt::join(placement.split, ",")));
    if (!placement.is_mapped) add("--load-mode", "none");
    if (!placement.is_repacked) add("--no-repack", "");
    if (!question_.settings.llama_cpp.offloads_cache) add("--no-kv-offload", "");
  }

  const Question& question_;
  const LlamaCppQuestion& asked_;
};

}  // namespace

Result<Row> make_llama_cpp_row(const Question& question) {
  PLIMSOLL_TRY(const LlamaCppQuestion asked, LlamaCppQuestion::read(question));
  return LlamaCppRow(question, asked).answer();
}

}  // namespace plimsoll::plan
