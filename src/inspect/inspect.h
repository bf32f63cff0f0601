// SPDX-License-Identifier: Apache-2.0
// What is wrong with this model, and how large is it? Every check before deployment, all findings and never
// only the first; sizes, layers, KV cache and context beside them. A Report is a value; what cannot be known
// is empty in it and null in its JSON. Reads headers only, unless asked for more. Beside it: compare.h.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "artifact/artifact.h"
#include "base/dtype.h"
#include "base/finding.h"
#include "base/json.h"
#include "base/result.h"
#include "base/units.h"
#include "memory/memory.h"
#include "model/model.h"

namespace plimsoll::inspect {

struct Options {
  bool is_deep = false;                              // --deep: read every tensor
  bool lists_tensors = false;                        // --tensors
  std::string tensor = {};                           // --tensor NAME: statistics of one
  std::optional<std::int64_t> sequence_tokens = {};  // --max-model-len: length that bytes_per_sequence is for
  std::string kv_cache_dtype = "auto";               // --kv-cache-dtype
  std::optional<memory::Workload> workload = {};     // --workload: the traffic that is meant
  std::string lock = {};                             // --lock: a record that the model is held against
  std::string gpu = {};                              // --gpu NAME[:N]: environment[] for these
  bool is_here = false;                              // --here: environment[] for this machine
};

struct Group {
  model::WeightGroup group = model::WeightGroup::kOther;
  std::int64_t parameters = 0;
};

/// Why a checkpoint shows other parameters than the model has.
enum class Cause {
  kMtp,
  kTiedHeadStored,
  kQuantizationScales,
  kMxfp4Blocks,
  kPacked4Bit,
  kStoredBuffers,
  kSharedKv,        // keys and values of layers that read another layer's
  kVocabularyRows,  // tables of more or fewer rows than vocab_size
  kUnstatedConfig,  // what the config leaves out and the checkpoint has
  kRounding,        // the total is published as a round number
  kUnexplained,     // the rest
};
/// mtp tied_head_stored quantization_scales mxfp4_blocks packed_4bit stored_buffers shared_kv_stored
/// vocabulary_rows unstated_config rounding unexplained
std::string_view to_string(Cause cause);

struct Difference {
  Cause cause = Cause::kUnexplained;
  std::int64_t parameters = 0;
  std::string detail = {};  // what it is made of, where the cause alone does not say
};

/// Logical parameters of the model proper: a tied head once, packed weights unpacked, no buffers or scales.
struct Parameters {
  std::optional<std::int64_t> total, active, active_without_embedding, mtp, hub_total;
  std::string hub_total_source;         // empty: counted from the files' headers
  std::vector<Group> by_group;          // sums to total
  std::vector<Difference> differences;  // total + their sum = hub_total
};

struct StoredAs {
  DType dtype = DType::kF32;
  std::int64_t parameters = 0;  // elements as stored
  std::int64_t num_tensors = 0;
  Bytes bytes;
};

struct Weights {
  std::optional<Bytes> bytes;       // tensor data: from headers, or what the config's dtype would take
  Bytes bytes_within;               // more or less, where a config leaves some bytes open
  bool is_exact = false;            // from headers
  bool is_dtype_assumed = false;    // the config declares none: 16 bits are counted
  std::optional<Bytes> most_bytes;  // then: were it 32 bits
  std::optional<Bytes> file_bytes;
  std::int64_t num_tensors = 0, num_files = 0;
  std::optional<std::int64_t> index_total_size_bytes;
  std::vector<StoredAs> by_dtype;  // most bytes first
  Json quantization;               // null for plain models
  std::vector<StoredAs> if_stored_as;
};

/// Neighbouring layers that are alike.
struct LayerRun {
  int first = 0, count = 0;
  model::Layer layer;
  Bytes kv_bytes_per_token;  // of one such layer
  Bytes state_bytes;         // of one such layer and sequence
};

struct KvCache {
  DType dtype = DType::kBF16;
  Bytes bytes_per_token, growing_bytes_per_token, without_gqa_bytes_per_token;
  Bytes indexer_bytes_per_token, state_bytes_per_sequence;
  std::int64_t sequence_tokens = 0;         // 0: no length is known
  std::optional<Bytes> bytes_per_sequence;  // empty when it does not fit 63 bits
};

struct ContextSource {
  std::string file, pointer;
  Json value;
};

/// A sliding window or attention chunk that the config states.
struct Window {
  std::int64_t tokens = 0;
  std::optional<bool> in_effect;       // empty: the architecture is not known
  std::optional<std::int64_t> layers;  // that have it
  std::string reason;                  // why it is not in effect
};

/// What a prompt's content may have: the length less the answer's reserve and the template's own tokens.
struct MaximumInput {
  std::optional<std::int64_t> tokens, template_overhead_tokens;
  std::int64_t reserved_output_tokens = 0;
  std::string reserved_by;
};

struct Context {
  std::optional<std::int64_t> native_tokens, extended_tokens, max_model_len;
  std::optional<Window> window;
  std::optional<MaximumInput> maximum_input;
  std::vector<ContextSource> sources;
};

/// Whether one copy of the model can be split over so many GPUs.
struct ParallelRow {
  int tensor_parallel = 1;
  bool is_possible = false;
  std::string reason;                        // why not, with both figures
  bool kv_replicated = false;                // ranks hold copies of KV heads or of the latent
  std::optional<bool> with_expert_parallel;  // possible with whole experts on each rank; empty: no experts
  std::optional<std::int64_t> experts_per_rank;  // empty: none, or not evenly
};

struct Report {
  std::string source;  // MODEL as given
  std::string commit;
  std::optional<std::string> architecture, model_type, license;
  std::vector<artifact::File> files;
  Parameters parameters;
  Weights weights;
  std::optional<model::ModelSpec> spec;  // empty: the architecture is not known, or its figures are not sound
  std::vector<LayerRun> layers;          // empty without a spec
  std::optional<KvCache> kv_cache;       // empty without a spec
  Context context;
  std::optional<memory::Workload> workload;  // as asked for
  Json tokenizer;                            // the document's object
  Json multimodal;                           // the document's object
  Json license_terms, card_claims;           // the document's objects
  Json generation_defaults;                  // null without generation_config.json
  std::vector<ParallelRow> parallel;         // empty: the heads are not known
  Json support, environment;                 // the document's arrays
  Json tensors, tensor;                      // null unless asked for
  Findings findings;
  std::optional<bool>
      values_scanned;  // every value was read (--deep), or headers only; absent: there are none
};

/// Inspects MODEL: all that `artifact::open` takes, and org/name of the built-in catalogue.
/// Errors: kMalformed when nothing at all can be said about the path; kUsage for an unknown --kv-cache-dtype,
///         --tensor or --gpu; kNetwork when a hub's repository cannot be read. Everything else becomes a
///         finding.
Result<Report> inspect(const std::string& model, const Options& options = {});

/// The document plimsoll.inspect/1. An unknown number is null, and a finding says why.
Json to_json(const Report& report);

/// The page for people: the four values that decide, the parts, the findings.
std::string to_text(const Report& report);

/// Exit status by the worst error finding: malformed before unsupported before a failed check; nothing when
/// there is none.
std::optional<ErrorCode> verdict_code(const Findings& findings);

}  // namespace plimsoll::inspect
