// SPDX-License-Identifier: Apache-2.0
// The one Artifact behind every form: files, their mappings, tensors and small JSON files. Readers of formats
// fill an ArtifactParts, which then never changes. Owns the mappings; reading is safe from any thread.
#pragma once

#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "artifact/artifact.h"
#include "artifact/name_table.h"
#include "base/mapped_file.h"

namespace plimsoll::artifact {

/// What the readers found out.
struct ArtifactParts {
  Form form = Form::kConfigOnly;
  std::string root;
  std::string folder;  // where files() are; empty for a lone file, which is `root` itself
  std::string commit;
  std::vector<File> files;
  std::map<int, MappedFile> mappings;  // by index into files; weights files only, of some their headers alone
  std::vector<Tensor> tensors;
  NameTable names;                    // of tensors, by their place in the list; TensorMerge keeps it
  std::list<std::string> held_texts;  // names that are not views into a mapping
  std::optional<std::int64_t> index_total_size_bytes;
  Json config;
  Findings findings;
};

class StoredArtifact final : public Artifact {
 public:
  explicit StoredArtifact(ArtifactParts parts);

  Form form() const override { return parts_.form; }
  const std::string& root() const override { return parts_.root; }
  const std::vector<File>& files() const override { return parts_.files; }
  const std::vector<Tensor>& tensors() const override { return parts_.tensors; }
  const Tensor* find(std::string_view name) const override;
  std::string commit() const override { return parts_.commit; }
  std::string path_of(const File& file) const override;
  const Json& config() const override { return parts_.config; }
  const Json& json_file(std::string_view name) const override;
  std::optional<Error> json_file_error(std::string_view name) const override;
  Result<std::string> text_file(std::string_view name) const override;
  Result<std::span<const std::byte>> data(const Tensor& tensor) const override;
  void release(std::span<const std::byte> part) const override;
  std::vector<std::string> cut_files() const override;
  std::vector<int> weights_files() const override;
  std::optional<std::int64_t> index_total_size_bytes() const override {
    return parts_.index_total_size_bytes;
  }
  const Findings& findings() const override { return parts_.findings; }

 private:
  struct ReadJson {
    Json value;
    std::optional<Error> error;
  };
  const ReadJson& read_json(std::string_view name) const;
  Result<const MappedFile*> mapped(int file) const;

  const ArtifactParts parts_;
  mutable std::mutex mutex_;                 // guards the two below
  mutable std::map<int, MappedFile> whole_;  // files whose headers alone were mapped first
  mutable std::map<std::string, std::unique_ptr<ReadJson>, std::less<>> json_files_;
};

}  // namespace plimsoll::artifact
