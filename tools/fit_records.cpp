// SPDX-License-Identifier: Apache-2.0
#include "tools/fit_records.h"

#include <cmath>
#include <fstream>

namespace plimsoll::starts {
namespace {

constexpr double kGiBytes = static_cast<double>(kGiB);

std::string source_of(const std::string& text) {
  if (text.starts_with("github:")) return text.substr(0, text.find(':', 7));
  if (text.starts_with("public-file:")) return text;
  const std::size_t end = text.find_first_of(":#");
  return text.find('#') != std::string::npos ? text : text.substr(0, end);
}

class Reader {
 public:
  explicit Reader(const Book& book) : book_(book) {}

  void read_records(const std::string& path) {
    for (const Json& row : read_rows(path)) add_record(row);
  }

  // model vllm gpu tp util weights activation non_torch cuda_graph kv_pool ...
  void read_measured(const std::string& path) {
    std::ifstream file(path);
    for (std::string line; std::getline(file, line);) {
      auto row = cells_of(line);
      row.resize(12);
      const auto model = book_.models.find(row[0]);
      if (model == book_.models.end() || row[1] != "v0.19" || row[6].empty() || row[7].empty()) continue;
      Record record;
      record.id = row[0] + " tp" + row[3];
      record.source = "llm-d-incubation/llm-d-planner";
      record.release = "0.19.0";
      record.planned = model->second;
      record.target = *plan::parse_target("H100");
      record.target.memory = Bytes(std::llround(79.19 * kGiBytes));
      record.settings.tensor_parallel = std::stoi(row[3]);
      record.settings.memory_utilization = std::stod(row[4]);
      record.target.count = *record.settings.tensor_parallel;
      record.overhead = std::stod(row[6]) + std::stod(row[7]);
      record.peak = std::stod(row[6]);
      if (!row[9].empty()) record.kv = std::stod(row[9]);
      finish(std::move(record));
    }
  }

  std::vector<Record> take() { return std::move(records_); }

 private:
  void add_record(const Json& row) {
    auto request = request_of(row, book_);
    const auto target = target_of(row);
    const std::string* version = row["version"].as_string();
    const auto release = version ? release_of(*version) : std::nullopt;
    const auto kv = row["available_kv_gib"].as_double(), weights = row["weights_gib"].as_double();
    const bool has_total = !row["total_gpu_gib"].is_null() || !row["budget_gib"].is_null();
    if (request && book_.not_planned.contains(request->models[0].source)) return;
    if (book_.not_planned.contains(*row["id"].as_string())) return;
    if (!request || !target || !release || !kv || !weights || !has_total) return;
    if (!request->settings.memory_utilization || (*kv <= 0 && row["activation_peak_gib"].is_null())) return;
    if (target->name && target->name->find("GB10") != std::string::npos) return;  // shared with others
    Record record;
    record.id = *row["id"].as_string();
    record.source = source_of(*row["source"].as_string());
    record.release = *release;
    record.planned = std::move(request->models[0]);
    record.target = *target;
    record.settings = std::move(request->settings);
    record.kv = kv;
    record.peak = row["activation_peak_gib"].as_double();
    record.overhead = static_cast<double>(record.target.memory.value) / kGiBytes *
                          *record.settings.memory_utilization -
                      *weights - *kv;
    finish(std::move(record));
  }

  void finish(Record record) {
    record.budget =
        static_cast<double>(record.target.memory.value) / kGiBytes * *record.settings.memory_utilization;
    record.is_set_apart = book_.not_fitted.contains(record.id);
    record.is_whole_weights = !book_.unknown_weights.contains(record.planned.source);
    records_.push_back(std::move(record));
  }

  const Book& book_;
  std::vector<Record> records_;
};

}  // namespace

std::vector<Record> read_records(const Book& book, const std::string& records, const std::string& measured) {
  Reader reader(book);
  reader.read_records(records);
  reader.read_measured(measured);
  return reader.take();
}

}  // namespace plimsoll::starts
