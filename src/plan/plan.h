// SPDX-License-Identifier: Apache-2.0
// How many tokens and requests fit, on what, and what would make more fit?
// The face of the room. Pure: no file, clock or machine is read here; the caller passes in what it knows of
// model and machine. Plain values; any thread may call.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/finding.h"
#include "base/json.h"
#include "base/machine.h"
#include "base/result.h"
#include "base/units.h"
#include "facts/facts.h"
#include "memory/memory.h"
#include "model/model.h"
#include "model/quantization.h"

namespace plimsoll::plan {

struct Model {
  std::string source;  // as asked for: a path or org/name
  std::string title;   // for people; may be the source
  model::ModelSpec spec;
  std::optional<Bytes> stored_weights;    // tensor bytes from headers; absent when there are no weight files
  std::int64_t default_length = 0;        // of requests where no flag says otherwise; 0: the spec's context
  std::optional<Bytes> declared_weights;  // what a checkpoint takes that is stored as the config declares
  std::optional<model::Quantization> quantization;  // as the config declares it
  std::optional<Bytes> most_declared;               // the same in 32 bits, where the config names no dtype
  memory::LlamaCppModelWeights gguf_weights;        // of a GGUF file; no weights: it is none
  /// By headers, what the embedded engine makes of the weights for --quantization, or why it does not; empty
  /// when there are no weight files.
  std::map<memory::WeightFormat, Result<Bytes>> loaded_weights;
};

/// Fills in what the config alone tells beside the spec, as inspect counts it: default length, cache type,
/// bytes of the checkpoint. `declared` is the quantization that counts, see model/declarations.h.
void read_declared(const Json& config, const std::optional<model::Quantization>& declared, Model& model);

/// The model of a catalogue entry. Errors: those of model::read_spec.
Result<Model> catalogue_model(const facts::CatalogueEntry& entry);

/// Where it is to run.
struct Target {
  bool is_here = false;             // this machine
  std::optional<std::string> name;  // of the GPU's row, or of the CPU; absent for a bare size
  std::string asked;                // name or size as it was given; empty when it was not
  std::int64_t count = 1;
  bool is_count_given = true;            // else as many as the ranks need
  const facts::GpuFacts* gpu = nullptr;  // its row; null for a bare size and a CPU
  Bytes memory;                          // of one
  std::optional<Bytes> available;        // free at start, when that is known
  std::optional<double> price;           // of one for an hour, in whatever money the caller counts
  std::vector<Target> beside;            // GPUs of further kinds in the same machine, in the engine's order

  /// Of all kinds.
  std::int64_t num_gpus() const;
};

/// Reads `--gpu NAME[:N]` or `--gpu 24GB[:N]`; several kinds of one machine with commas between them.
/// Errors: kUsage for unknown names, sizes and counts.
Result<Target> parse_target(const std::string& text);
/// Reads `--gpu-price NAME=PRICE`: the price of one GPU for an hour becomes that of the targets it names. A
/// name that none of them has is added with as many as a search takes by itself. Errors: kUsage.
Status add_price(const std::string& text, std::vector<Target>& targets);
/// The GPUs of this machine as a target, all of them as large as the smallest; absent without any, or where
/// the driver tells no size. Source: facts::parse_nvidia_smi.
std::optional<Target> target_of(const std::vector<facts::InstalledGpu>& gpus);
/// All GPUs of the catalogue that vLLM has releases for, up to 8 of each.
std::vector<Target> catalogue_targets();
/// This machine as a target. Errors: kUnsupported when the system does not tell its memory.
Result<Target> target_here(const Machine& machine);

/// The flags of llama.cpp beside those that it shares; --ctx-size is `max_model_len`.
struct LlamaCppSettings {
  memory::LlamaCppContext context;  // its length and types are read from the shared flags
  memory::LlamaCppPlacement placement;
  std::string key_type, value_type;  // --cache-type-k, --cache-type-v; empty: as kv_cache_dtype
  bool offloads_cache = true;        // --no-kv-offload: keys, values and states stay with the CPU
  std::optional<Bytes> host_memory;  // for what stays with the CPU; absent: without end, as the engine has it
};

/// The flags that reach the arithmetic; absent means the engine's default.
struct Settings {
  std::optional<std::int64_t> max_model_len;
  bool longest_model_len = false;  // --max-model-len auto
  std::string kv_cache_dtype = "auto";
  std::string dtype = "auto";
  std::optional<Bytes> kv_cache_bytes;
  std::optional<std::int64_t> num_blocks;
  std::optional<int> block_size;
  std::optional<int> max_num_seqs;
  std::optional<int> max_num_batched_tokens;
  std::optional<int> threads;
  std::optional<double> memory_utilization;
  std::optional<memory::WeightFormat> quantization;
  // Of engines on GPUs.
  std::optional<int> tensor_parallel;  // else all GPUs that the other sizes leave
  std::optional<int> pipeline_parallel, data_parallel, decode_context_parallel;  // else 1
  bool is_expert_parallel = false;
  bool is_eager = false;            // no CUDA graphs
  bool is_language_only = false;    // encoders are neither loaded nor run
  bool has_whole_encoders = false;  // --mm-encoder-tp-mode data: on every rank, where the model's class can
  bool has_tables_on_gpu = false;   // --engram-config {"cpu_offload":false}
  std::optional<bool> prefix_caching, hybrid_manager;
  std::optional<memory::VllmStateMode> state_mode;
  bool is_async = true;                  // a batch is prepared while another runs
  std::optional<DType> state_dtype;      // --mamba-ssm-cache-dtype
  bool has_fp8_index_keys = false;       // --attention-config.indexer_kv_dtype fp8
  bool uses_flashinfer_prefill = false;  // --gdn-prefill-backend flashinfer
  int num_speculative_tokens = 0;        // of the model's own prediction layers
  LlamaCppSettings llama_cpp;
};

struct Request {
  facts::EngineChoice engine;
  std::optional<facts::EngineChoice> against;  // another release, whose rows are held beside these
  bool is_search =
      false;  // tries layouts on up to so many of each target's GPUs; settings that are given stay
  bool is_simple = false;       // --accounting simple: the document's table
  std::vector<Model> models;    // empty with is_simple: the document's eight rows
  std::vector<Target> targets;  // may be empty when the pool's size is given
  Settings settings;
  int machine_threads = 1;  // cores of this machine, for engines that run here
  // The models are all that are known: each in the first form that fits, ranked; those that cannot be planned
  // are named in a finding.
  bool is_fit = false;
};

struct Part {
  std::string part;  // weights kv_cache activation ...
  Bytes bytes;
  std::string why;  // for a part of 0 bytes: why; else what it is, or empty
};

/// What an engine allocates at once, under its own names.
struct Buffer {
  std::string device;  // CUDA0 CPU CPU_Mapped CPU_REPACK CUDA_Host
  std::string kind;    // model kv rs output compute
  Bytes bytes;
};

/// What one device of an engine that names them has to hold.
struct DeviceUse {
  std::string device;              // CUDA0 CPU
  std::optional<std::string> gpu;  // its row's name
  std::int64_t layers = 0;         // the output counts as one
  Bytes used;
  std::optional<Bytes> budget;  // absent: nothing to hold against
};

/// How sure a number is; a number without a Basis is exact.
struct Basis {
  std::string field;  // of the row, as in JSON
  std::string kind;   // formula calibrated measured assumed
  std::optional<double> low, high;
  std::string source;
};

/// One thing to turn, and what it brings.
struct Lever {
  std::string id;  // kv_cache_memory_bytes max_model_len kv_cache_dtype quantization gpus max_num_seqs
  std::string change, flag, caution;
  std::string basis_before, basis_after;  // kind of the numbers' Basis; empty: exact
  std::optional<std::int64_t> kv_tokens_before, kv_tokens_after;
  std::optional<double> requests_before, requests_after;
};

/// In which form a known model was tried.
struct Form {
  std::optional<memory::WeightFormat> format;  // absent: as published
  bool is_full_length = true;                  // else the longest that fits
};

/// One model on one target.
struct Row {
  std::string model, title;
  std::string weights_dtype, kv_cache_dtype;
  std::optional<Target> target;
  bool fits = false;
  std::optional<Form> form;     // with is_fit
  std::optional<double> cost;   // in a search: price or GiB of memory of all its GPUs
  bool can_be = true;           // false: heads cannot be split so; no number below is known then
  Bytes weights;                // of one GPU
  Bytes total_weights;          // over all GPUs
  std::optional<Bytes> budget;  // of one GPU
  Bytes kv_cache;               // of one GPU; what is there when it does not fit
  Bytes total_kv_cache;         // over all GPUs
  Bytes required_kv_cache;      // of one GPU, for one request of max_model_len
  Bytes missing;                // of one GPU, where it does not fit for want of memory
  Bytes kv_bytes_per_token;     // of one GPU
  std::optional<Bytes> bytes_per_block;
  std::optional<std::int64_t> block_size;
  std::int64_t num_layers = 0;
  std::vector<memory::VllmGroup> groups;     // empty: every layer pages alike
  std::vector<Bytes> stage_blocks;           // bytes of a block on each pipeline stage; empty: one stage
  std::vector<Bytes> stage_weights;          // bytes of weights on each; empty: not known apart
  std::vector<int> stage_layers;             // layers of each; empty: as vLLM shares them out
  std::optional<double> memory_utilization;  // the share of the memory that the budget is
  std::optional<std::int64_t> batch_tokens, batch_sequences;  // of one step: flags, or the engine's defaults
  int tensor_parallel = 0;                                    // 0: all GPUs
  int pipeline_parallel = 0;                                  // 0: as many as stage_blocks, or 1
  int data_parallel = 1;
  int decode_context_parallel = 1;
  bool is_expert_parallel = false;
  Blocks num_blocks;
  Tokens kv_tokens;
  Tokens max_model_len;
  double max_concurrency = 0;
  std::optional<Tokens> estimated_max_model_len;
  std::optional<Bytes> peak;         // of the process when every block is in use; engines that run here only
  Bytes error_bar;                   // half width of the band around kv_cache
  std::string limited_by;            // what decided kv_cache: memory max_num_seqs default_limit flag
  std::optional<Bytes> larger_pool;  // what a flag could make of kv_cache, when default_limit cut it
  std::string weights_basis;         // kind of the weights' Basis; empty: exact
  Bytes weights_bar;                 // over all GPUs
  bool weights_are_least = false;    // the bar lies above them alone: 16 bits that may be 32
  std::vector<Part> parts;
  std::vector<Buffer> buffers;     // over all devices, of engines that print them
  std::vector<DeviceUse> devices;  // of the same engines
  std::string engine_message;      // why it refuses; empty when it fits
  std::string log_line;            // the engine's capacity sentence; empty when it has none
  std::vector<std::string> command;
  Findings findings;
  std::vector<Lever> levers;
  std::vector<Basis> basis;
};

/// What a model costs, for the lines above the simple table.
struct ModelFigures {
  std::string title;
  std::int64_t parameters = 0;
  Bytes kv_bytes_per_token, kv_bytes_per_token_without_gqa;
};

/// A value that two releases do not share.
struct Change {
  std::size_t row = 0;
  std::string field;                  // of the row, as in JSON
  Json before, after;                 // in the plan's release and in the other one
  std::vector<std::string> releases;  // in which it changed on the way, oldest first

  /// `after` - `before` of numbers; null of all else.
  Json difference() const;
};

/// The same rows by the rules of another release.
struct Against {
  facts::EngineChoice engine;
  std::vector<Row> rows;  // as many as the plan has, in its order
  std::vector<Change> changes;
  std::vector<std::pair<std::string, std::string>> rules;  // release, and what it changed; oldest first
};

/// A layout that was tried and cannot be.
struct Rejected {
  std::string model;
  std::optional<Target> target;
  int tensor_parallel = 1, pipeline_parallel = 1, data_parallel = 1, decode_context_parallel = 1;
  bool is_expert_parallel = false;
  std::string weights_dtype, kv_cache_dtype;
  std::string id;                // of the finding that says it, or DOES_NOT_FIT
  std::string reason;            // with the figures
  std::optional<Bytes> missing;  // of each GPU, with DOES_NOT_FIT
};

/// What a search went through; its rows are those that fit, cheapest first.
struct Search {
  std::int64_t num_layouts = 0;
  bool has_prices = false;         // all targets have one: rows are in its order, else in that of GPU memory
  std::vector<Rejected> rejected;  // in the order in which they were tried
};

struct Plan {
  facts::EngineChoice engine;
  std::optional<Search> search;
  std::optional<Against> against;
  bool is_simple = false;
  bool is_document_table = false;  // the eight rows: shown, not asked whether they fit
  std::vector<Row> rows;
  std::vector<ModelFigures> models;  // with is_simple
  Findings findings;

  /// Whether the answer is yes: some row fits, by the rules of the other release too.
  bool fits() const;
};

/// Errors: kUnsupported for models that the engine does not run or that are not modelled there; kUsage for
/// settings that make no sense together, and for releases of two engines; kMalformed for sizes beyond 63
/// bits. Not fitting is no error. Findings: MODELS_LEFT_OUT for what a fit cannot plan; of several models
/// that were named, such a one has a row with NOT_PLANNED instead.
Result<Plan> make_plan(const Request& request);

/// The document plimsoll.plan/1.
Json to_json(const Plan& plan);
/// The same for people, numbers with their units.
std::string to_text(const Plan& plan);

}  // namespace plimsoll::plan
