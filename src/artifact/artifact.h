// SPDX-License-Identifier: Apache-2.0
// What tensors and metadata does this folder or file hold? One view over a Hugging Face folder (single or
// sharded safetensors), a GGUF file and a lone config. Opening reads headers only; tensor bytes are mapped on
// first use. Everything that is wrong becomes a finding; opening fails only when nothing at all can be said
// about the path. An Artifact owns its mappings; spans it hands out live as long as it does. Reading is safe
// from any thread. hub/settings.h beside it: the hub and its cache, as the environment says.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "artifact/shape.h"
#include "base/dtype.h"
#include "base/finding.h"
#include "base/json.h"
#include "base/result.h"
#include "base/units.h"

namespace plimsoll::artifact {

enum class Form { kSafetensors, kGguf, kConfigOnly, kTokenizerOnly };

enum class FileRole {
  kWeights,
  kIndex,
  kConfig,
  kGenerationConfig,
  kTokenizer,
  kTemplate,
  kProcessor,
  kLicense,
  kReadme,
  kCode,
  kOther
};
std::string_view to_string(FileRole role);

struct File {
  std::string path;  // relative to the model root; the file's own name for a lone file
  Bytes bytes;
  FileRole role = FileRole::kOther;
  std::string sha256{};  // that it should have, where a hub, or a blob's name, says so; else empty
};

struct Tensor {
  std::string_view name;  // as the file spells it; the artifact owns the text
  DType dtype = DType::kF32;
  int file = 0;  // index into files()
  Shape shape;   // outermost first, as safetensors; GGUF's dimensions are reversed into this order
  std::int64_t offset_bytes = 0;  // from the start of the file
  std::int64_t bytes = 0;
  std::int64_t elements() const;
};

/// What a hub said about the repository that an artifact comes from.
struct HubFacts {
  std::string id;        // the repository's name of today
  std::string revision;  // that was asked for
  std::string commit;    // that it meant
  std::string license;   // the hub's id of it; empty when it names none
  bool is_gated = false;
  bool is_private = false;
  std::optional<std::int64_t> safetensors_total;  // parameters, as the hub shows them
};

struct LockRecord;  // lock.h

class Artifact {
 public:
  virtual ~Artifact() = default;

  virtual Form form() const = 0;
  virtual const std::string& root() const = 0;  // folder, or the file itself
  virtual const std::vector<File>& files() const = 0;
  virtual const std::vector<Tensor>& tensors() const = 0;  // in file order; each name once
  virtual const Tensor* find(std::string_view name) const;

  /// The commit that the folder's place in a hub cache names (snapshots/COMMIT); empty elsewhere.
  virtual std::string commit() const { return {}; }

  /// Where the content of a file of files() lies on this machine; empty when it does not.
  virtual std::string path_of(const File& file) const {
    (void)file;
    return {};
  }

  /// The lock record that it was held against; null without one.
  virtual const LockRecord* lock() const { return nullptr; }

  /// What the hub said; null when none was asked.
  virtual const HubFacts* hub() const { return nullptr; }

  /// config.json as it stands; for GGUF an object of all metadata keys (arrays included). Null when there is
  /// none.
  virtual const Json& config() const = 0;
  /// generation_config.json, tokenizer_config.json, ... of the folder by file name; null when absent or
  /// unreadable. Small JSON files (<= 64 MiB) only. Read on demand, cached.
  virtual const Json& json_file(std::string_view name) const = 0;
  /// Why json_file(name) is null although the file is there; nothing when it was read, or is absent.
  virtual std::optional<Error> json_file_error(std::string_view name) const {
    (void)name;
    return std::nullopt;
  }
  /// Any other small text file of the folder (chat_template.jinja). Errors: kMalformed when absent or too
  /// large.
  virtual Result<std::string> text_file(std::string_view name) const = 0;

  /// False when only headers were read (from a hub): data() then fails for every tensor.
  virtual bool has_tensor_bytes() const { return true; }
  /// The stored bytes of a tensor, mapped from the file.
  /// Errors: kMalformed when the file is absent or ends before the tensor does; kUnsupported without
  /// has_tensor_bytes().
  virtual Result<std::span<const std::byte>> data(const Tensor& tensor) const = 0;

  /// The bytes of `part`, which data() gave, are not needed now: they stay readable, but need not stay in
  /// memory. For readers of whole models.
  virtual void release(std::span<const std::byte> part) const { (void)part; }
  /// Weights files that have become shorter since they were opened: what they lost reads as zeros.
  virtual std::vector<std::string> cut_files() const { return {}; }

  /// metadata.total_size of the folder's shard index; nothing without one.
  virtual std::optional<std::int64_t> index_total_size_bytes() const { return std::nullopt; }

  /// Faults of files, headers, index and so on; `inspect` adds the ones that need more knowledge.
  virtual const Findings& findings() const = 0;
  /// Places in files() of the weights files that were read, also of those that hold no tensor. Sorted.
  virtual std::vector<int> weights_files() const { return {}; }
};

struct StoredTemplate {
  std::string file, text;  // file: where it stands; of GGUF the key
};
/// The chat template of this name that is used: `name` chooses among several, "" is the default one.
std::optional<StoredTemplate> stored_chat_template(const Artifact& artifact, std::string_view name = {});

/// Checks the content of every tensor where that needs no knowledge of the model, NaN and infinity counts,
/// and of every file whose digest is known. Reads all tensor bytes once. Tensors that lie outside their file
/// were found by `open` and are skipped.
Findings deep_findings(const Artifact& artifact);

/// What a caller needs of a model that is not on this machine yet.
enum class Need {
  kHeaders,  // all but tensor bytes: data() then says that they were not downloaded
  kText,     // configs, tokenizer, templates
  kTensors,  // all; downloads the weights
};

struct OpenOptions {
  Need need = Need::kHeaders;
  std::string lock{};           // path of a lock record that MODEL is held against
  bool checks_digests = false;  // of a lock record: reads every file
  /// The config of an id that is known without a network (facts::catalogue_config); asked when the hub cannot
  /// be reached or does not give its files.
  std::function<std::optional<Json>(std::string_view id)> catalogue{};
};

/// Opens MODEL: a folder, a .gguf file, a lone *.json config, a lone tokenizer file, a lock record (lock.h),
/// or org/name[@revision] of a hub (hub/open_hub.h; `pull` is hub/pull.h). Errors: kMalformed when the path
/// does not exist or is none of these; kNetwork from the hub.
Result<std::shared_ptr<const Artifact>> open(const std::string& model, const OpenOptions& options = {});

/// An artifact that is no more than a config, for models known by their config's facts alone. `source` stands
/// as root().
std::shared_ptr<const Artifact> from_config(Json config, std::string source);

/// The first error-level finding as an Error with its exit class; nothing when the artifact is sound. For
/// verbs that must not run on broken files (serve, generate).
std::optional<Error> first_error(const Findings& findings);

/// The Error of weights that became shorter while they were used (kMalformed, naming the file): what was made
/// of them rests on zeros. Nothing when all are whole. Cheap, for after each step.
std::optional<Error> cut_error(const Artifact& artifact);

}  // namespace plimsoll::artifact
