// SPDX-License-Identifier: Apache-2.0
// Do these GPUs, or this machine, have what the model asks for? Number format against compute capability,
// driver, GPU memory, interconnect, host memory, disk. Exact memory is the plan's question. Reads /proc, disk
// sizes and nvidia-smi for --here only.
#pragma once

#include "base/machine.h"
#include "base/result.h"
#include "facts/facts.h"
#include "inspect/inspect.h"
#include "inspect/subject.h"

namespace plimsoll::inspect {

/// What the checks compare with; absent means not known.
struct Surroundings {
  std::string origin;                    // "--gpu H100", "this machine"
  const facts::GpuFacts* gpu = nullptr;  // the row of its name
  std::string gpu_name;                  // as given or as the driver says; empty: there is none
  std::int64_t num_gpus = 0;
  std::optional<Bytes> gpu_memory;        // of one
  std::optional<int> compute_capability;  // 90
  std::string driver;
  std::optional<Bytes> host_memory, free_disk;
  bool is_machine = false;  // --here: rows for driver, host and disk make sense
};

/// This machine as it is now. `model` decides whose disk is asked.
Surroundings surroundings_here(const std::string& model);
/// "H100:4". Errors: kUsage for a name that is none.
Result<Surroundings> surroundings_of_gpu(const std::string& text);

/// Rows {need, found, ok, source} and ENV_* findings for these surroundings.
Json environment_json(const Subject& subject, const Surroundings& surroundings, Report& report);

/// Fills report.environment when --gpu or --here asks for it; else it stays null.
/// Errors: kUsage for an unknown --gpu.
Status check_environment(const Subject& subject, Report& report);

}  // namespace plimsoll::inspect
