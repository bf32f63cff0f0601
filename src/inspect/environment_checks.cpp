// SPDX-License-Identifier: Apache-2.0
#include "inspect/environment_checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <utility>

#include "artifact/hub/settings.h"
#include "base/mapped_file.h"
#include "base/nvidia_smi.h"

namespace plimsoll::inspect {
namespace {

std::string shown(int capability) {
  return fmt::format("{}.{}", capability / 10, capability % 10);
}

std::optional<Bytes> free_disk_of(const std::string& model) {
  std::error_code error;
  // What is not here goes to the hub's cache; a folder that is still to be made lies on its parent's disk.
  std::filesystem::path path =
      std::filesystem::exists(model, error) ? model : artifact::HubSettings::from_environment().cache;
  while (!path.empty() && !std::filesystem::exists(path, error) && path != path.parent_path())
    path = path.parent_path();
  if (path.empty()) path = ".";
  const auto space = std::filesystem::space(path, error);
  if (error || space.available > static_cast<std::uintmax_t>(INT64_MAX)) return std::nullopt;
  return Bytes(static_cast<std::int64_t>(space.available));
}

class Rows {
 public:
  Rows(const Subject& subject, const Surroundings& around, Report& report)
      : subject_(subject), around_(around), report_(report) {}

  Json take() {
    // Most models are served on a GPU; a CPU engine needs none.
    if (around_.is_machine && around_.num_gpus == 0)
      find("ENV_GPU_NONE", FindingLevel::kWarning,
           fmt::format("no GPU was found on {}: nvidia-smi is absent or lists none", around_.origin),
           "serve with a CPU engine (plimsoll, llama.cpp), or look at a planned machine with --gpu NAME[:N]");
    add_number_format();
    add_gpu_memory();
    add_interconnect();
    if (around_.is_machine) {
      add_driver();
      add_host_memory();
      add_disk();
    }
    return std::move(rows_);
  }

 private:
  void add(std::string need, Json found, std::optional<bool> is_met, std::string source) {
    rows_.push_back(Json::object({{"need", std::move(need)},
                                  {"found", std::move(found)},
                                  {"ok", is_met},
                                  {"source", std::move(source)}}));
  }

  void find(const char* id, FindingLevel level, std::string message, std::string fix) {
    add_check(report_.findings, id, level, around_.origin, std::move(message), std::move(fix));
  }

  // The format's name as the facts' table has it: quantized, or the widest stored type.
  std::pair<std::string, std::string> number_format() const {
    const Json& quantization = report_.weights.quantization;
    const auto text = [](const Json& value) {
      return value.is_string() ? *value.as_string() : std::string();
    };
    if (quantization.is_object() && !subject_.is_gguf())
      return {text(quantization["method"]), text(quantization["format"])};
    if (report_.spec && report_.spec->declared_dtype)
      return {"", std::string(name(*report_.spec->declared_dtype))};
    return {"", report_.weights.by_dtype.empty() ? "" : std::string(name(report_.weights.by_dtype[0].dtype))};
  }

  void add_number_format() {
    if (subject_.is_gguf()) return;  // llama.cpp widens every block format itself
    const auto [method, format] = number_format();
    const auto* row =
        method.empty() && format.empty() ? nullptr : facts::find_format_capability(method, format);
    const std::string what = method.empty()                       ? format
                             : format.empty() || format == method ? method
                                                                  : method + " " + format;
    if (!row) {
      if (!what.empty())
        add(fmt::format("a GPU that computes {}", what), nullptr, std::nullopt, "not known for this format");
      return;
    }
    const std::string need = row->least < row->native
                                 ? fmt::format("compute capability {} for {} (loads from {} on)",
                                               shown(row->native), what, shown(row->least))
                                 : fmt::format("compute capability {} for {}", shown(row->native), what);
    const auto& have = around_.compute_capability;
    if (!have) {
      add(need, around_.gpu ? Json(around_.gpu->compute_capability) : Json(), std::nullopt,
          std::string(row->source));
      return;
    }
    add(need, shown(*have), *have >= row->least, std::string(row->source));
    if (*have < row->least)
      find("ENV_COMPUTE_CAPABILITY", FindingLevel::kError,
           fmt::format("{} has compute capability {}, {} needs {}", around_.gpu_name, shown(*have), what,
                       shown(row->least)),
           "take a newer GPU or weights in another format");
    else if (*have < row->native)
      find("ENV_COMPUTE_CAPABILITY", FindingLevel::kInfo,
           fmt::format("{} has compute capability {}, {} is computed natively from {} on: {}",
                       around_.gpu_name, shown(*have), what, shown(row->native), row->below),
           "expect the memory of the format, not its speed");
  }

  void add_gpu_memory() {
    if (!report_.weights.bytes) return;
    const Bytes weights = *report_.weights.bytes;
    const std::string need = fmt::format("GPU memory above {} for the weights alone", as_gib(weights));
    if (!around_.gpu_memory) {
      const bool has_none = around_.gpu_name.empty() && around_.is_machine;
      add(need, has_none ? Json("no GPU") : Json(), has_none ? std::optional(false) : std::nullopt,
          "tensor bytes");
      return;
    }
    const std::int64_t all = checked_product(around_.gpu_memory->value, around_.num_gpus).value_or(INT64_MAX);
    add(need, fmt::format("{} x {}", around_.num_gpus, as_gib(*around_.gpu_memory)), all > weights.value,
        "tensor bytes; the driver's total");
    if (all <= weights.value)
      find("ENV_GPU_MEMORY", FindingLevel::kWarning,
           fmt::format("the weights take {} bytes, {} x {} have {}", weights.value, around_.num_gpus,
                       around_.gpu_name, all),
           "take more or larger GPUs, or a quantized version; `plan` says what fits");
  }

  void add_interconnect() {
    if (!report_.weights.bytes || !around_.gpu_memory || around_.gpu_memory->value <= 0) return;
    const bool is_split = report_.weights.bytes->value > around_.gpu_memory->value || around_.num_gpus > 1;
    if (!is_split) return;
    const auto* gpu = around_.gpu;
    const bool has_link = gpu && gpu->link.find("NVLink") != std::string_view::npos;
    const bool is_known = gpu && !gpu->link.empty();
    add("a fast link between GPUs: tensor parallelism communicates in every layer",
        is_known ? Json(gpu->link_gb_per_s
                            ? fmt::format("{}, {} GB/s", gpu->link, format_double(*gpu->link_gb_per_s))
                            : std::string(gpu->link))
                 : Json(),
        is_known ? std::optional(has_link || gpu->vendor != "NVIDIA") : std::nullopt,
        is_known ? std::string(gpu->source) : "not known");
    if (is_known && !has_link && gpu->vendor == "NVIDIA")
      find("ENV_INTERCONNECT", FindingLevel::kInfo,
           fmt::format("{} are linked by {} only; tensor parallelism communicates in every layer",
                       around_.gpu_name, gpu->link),
           "prefer pipeline parallelism or replicas over tensor parallelism on these");
  }

  void add_driver() {
    if (around_.gpu_name.empty() && around_.driver.empty()) return;
    for (const facts::EngineEnvironment& engine : facts::engine_environments()) {
      const bool is_known = !around_.driver.empty();
      const bool is_met = is_known && facts::is_at_least(around_.driver, engine.min_driver);
      add(fmt::format("NVIDIA driver {} for {} {} (CUDA {})", engine.min_driver, engine.engine,
                      engine.version, engine.cuda),
          is_known ? Json(around_.driver) : Json(), is_known ? std::optional(is_met) : std::nullopt,
          std::string(engine.source));
      if (is_known && !is_met)
        find("ENV_DRIVER", FindingLevel::kWarning,
             fmt::format("driver {} is older than {}, which CUDA {} of {} {} needs", around_.driver,
                         engine.min_driver, engine.cuda, engine.engine, engine.version),
             "update the driver, or take an older release of the engine");
    }
  }

  // Engines map or read whole shards; a host that cannot hold the largest one swaps while loading.
  void add_host_memory() {
    std::int64_t largest = 0;
    for (const artifact::File& file : subject_.artifact.files())
      if (file.role == artifact::FileRole::kWeights) largest = std::max(largest, file.bytes.value);
    if (largest == 0) return;
    const bool is_known = around_.host_memory.has_value();
    const bool is_met = is_known && around_.host_memory->value > largest;
    add(fmt::format("host memory above {}, the largest file of weights", as_gib(Bytes(largest))),
        is_known ? Json(as_gib(*around_.host_memory)) : Json(),
        is_known ? std::optional(is_met) : std::nullopt,
        "file sizes; /proc/meminfo and the control group's limit");
    if (is_known && !is_met)
      find("ENV_HOST_MEMORY", FindingLevel::kWarning,
           fmt::format("the largest file has {} bytes, this machine {} of memory", largest,
                       around_.host_memory->value),
           "load from smaller shards, or on a larger host");
  }

  void add_disk() {
    // Files that are here need no more room; what a hub only told of has still to be downloaded.
    const bool is_here = subject_.artifact.has_tensor_bytes() && !subject_.artifact.tensors().empty();
    if (is_here || !report_.weights.bytes) return;
    const bool is_known = around_.free_disk.has_value();
    const bool is_met = is_known && around_.free_disk->value > report_.weights.bytes->value;
    add(fmt::format("disk for a download of {}", as_gib(*report_.weights.bytes)),
        is_known ? Json(as_gib(*around_.free_disk)) : Json(), is_known ? std::optional(is_met) : std::nullopt,
        "tensor bytes; free space of the hub cache's disk");
    if (is_known && !is_met)
      find("ENV_DISK", FindingLevel::kWarning,
           fmt::format("the download has about {} bytes, the disk {} free", report_.weights.bytes->value,
                       around_.free_disk->value),
           "free space, or set HF_HOME to a larger disk");
  }

  const Subject& subject_;
  const Surroundings& around_;
  Report& report_;
  Json rows_ = Json::array();
};

}  // namespace

Surroundings surroundings_here(const std::string& model) {
  Surroundings around;
  around.origin = "this machine";
  around.is_machine = true;
  around.host_memory = read_machine().memory_total;
  around.free_disk = free_disk_of(model);
  if (const auto text = read_file("/proc/driver/nvidia/version", 4096))
    around.driver = facts::parse_driver_version(*text);
  const auto gpus = facts::parse_nvidia_smi(nvidia_smi_output());
  if (gpus.empty()) return around;
  around.gpu_name = gpus[0].name;
  around.driver = gpus[0].driver;
  around.compute_capability = gpus[0].compute_capability;
  around.num_gpus = static_cast<std::int64_t>(gpus.size());
  // Ranks are equal: the smallest GPU counts.
  for (const auto& gpu : gpus)
    if (gpu.memory && (!around.gpu_memory || *gpu.memory < *around.gpu_memory))
      around.gpu_memory = gpu.memory;
  if (const auto row = facts::find_gpu(around.gpu_name)) around.gpu = *row;
  return around;
}

Result<Surroundings> surroundings_of_gpu(const std::string& text) {
  constexpr std::int64_t kMost = 65'536;
  Surroundings around;
  const std::size_t colon = text.rfind(':');
  around.gpu_name = text.substr(0, colon);
  around.num_gpus = 1;
  if (colon != std::string::npos) {
    const char *begin = text.data() + colon + 1, *end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(begin, end, around.num_gpus);
    if (error != std::errc{} || stop != end || around.num_gpus < 1 || around.num_gpus > kMost)
      return fail(ErrorCode::kUsage,
                  fmt::format("\"{}\" is not a number of GPUs from 1 to {}", text.substr(colon + 1), kMost),
                  "--gpu", "give NAME or NAME:N");
  }
  around.origin = "--gpu " + text;
  // A bare number is a name ("4090"), a size has its letters.
  const bool has_letters = around.gpu_name.find_first_not_of("0123456789.") != std::string::npos;
  if (const auto size = has_letters ? parse_size(around.gpu_name) : std::nullopt; size && *size > 0) {
    around.gpu_memory = Bytes(*size);
    return around;
  }
  PLIMSOLL_TRY(around.gpu, facts::find_gpu(around.gpu_name));
  around.gpu_name = std::string(around.gpu->name);
  around.gpu_memory = around.gpu->memory();
  around.compute_capability = facts::parse_capability(around.gpu->compute_capability);
  return around;
}

Json environment_json(const Subject& subject, const Surroundings& surroundings, Report& report) {
  return Rows(subject, surroundings, report).take();
}

Status check_environment(const Subject& subject, Report& report) {
  const Options& options = subject.options;
  if (options.gpu.empty() && !options.is_here) return {};
  report.environment = Json::array();
  std::vector<Surroundings> all;
  if (!options.gpu.empty()) {
    PLIMSOLL_TRY(Surroundings around, surroundings_of_gpu(options.gpu));
    all.push_back(std::move(around));
  }
  if (options.is_here) all.push_back(surroundings_here(report.source));
  for (const Surroundings& around : all) {
    const Json rows = environment_json(subject, around, report);
    for (const Json& row : rows.items()) report.environment.push_back(row);
  }
  return {};
}

}  // namespace plimsoll::inspect
