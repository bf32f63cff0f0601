// SPDX-License-Identifier: Apache-2.0
#include "artifact/hub/view.h"

#include <utility>

namespace plimsoll::artifact {
namespace {

class View final : public Artifact {
 public:
  explicit View(ViewParts parts) : parts_(std::move(parts)), findings_(std::move(parts_.findings)) {
    const Findings& others = parts_.shown->findings();
    findings_.insert(findings_.end(), others.begin(), others.end());
  }

  Form form() const override { return parts_.shown->form(); }
  const std::string& root() const override { return parts_.shown->root(); }
  const std::vector<File>& files() const override {
    return parts_.files.empty() ? parts_.shown->files() : parts_.files;
  }
  const std::vector<Tensor>& tensors() const override { return parts_.shown->tensors(); }
  const Tensor* find(std::string_view name) const override { return parts_.shown->find(name); }
  std::string commit() const override {
    return parts_.hub && !parts_.hub->commit.empty() ? parts_.hub->commit : parts_.shown->commit();
  }
  std::string path_of(const File& file) const override {
    return parts_.stand_ins.contains(file.path) ? std::string() : parts_.shown->path_of(file);
  }
  const LockRecord* lock() const override { return parts_.lock ? &*parts_.lock : parts_.shown->lock(); }
  const HubFacts* hub() const override { return parts_.hub ? &*parts_.hub : parts_.shown->hub(); }
  const Json& config() const override { return parts_.shown->config(); }
  const Json& json_file(std::string_view name) const override { return parts_.shown->json_file(name); }
  std::optional<Error> json_file_error(std::string_view name) const override {
    return parts_.shown->json_file_error(name);
  }
  Result<std::string> text_file(std::string_view name) const override {
    return parts_.shown->text_file(name);
  }
  Result<std::span<const std::byte>> data(const Tensor& tensor) const override {
    if (parts_.has_tensor_bytes) return parts_.shown->data(tensor);
    return fail(ErrorCode::kUnsupported,
                "reading tensor " + std::string(tensor.name) +
                    ": only headers were read from the hub, its bytes were not downloaded",
                parts_.hub ? parts_.hub->id : std::string(), "`plimsoll pull` the model first");
  }
  void release(std::span<const std::byte> part) const override { parts_.shown->release(part); }
  std::vector<std::string> cut_files() const override { return parts_.shown->cut_files(); }
  std::vector<int> weights_files() const override { return parts_.shown->weights_files(); }
  std::optional<std::int64_t> index_total_size_bytes() const override {
    return parts_.shown->index_total_size_bytes();
  }
  bool has_tensor_bytes() const override {
    return parts_.has_tensor_bytes && parts_.shown->has_tensor_bytes();
  }
  const Findings& findings() const override { return findings_; }

 private:
  const ViewParts parts_;
  Findings findings_;
};

}  // namespace

std::shared_ptr<const Artifact> make_view(ViewParts parts) {
  return std::make_shared<View>(std::move(parts));
}

}  // namespace plimsoll::artifact
