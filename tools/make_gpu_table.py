#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes src/facts/gpus_table.cpp from data/golden/gpus.tsv. Run in the repository root; then clang-format."""
import csv

with open("data/golden/gpus.tsv", encoding="utf-8") as table:
    rows = list(csv.DictReader(table, delimiter="\t", quoting=csv.QUOTE_NONE))


def number(value):
    value = (value or "").strip()
    return value if value else "{}"


def text(value):
    return '"' + (value or "").strip().replace("\\", "\\\\").replace('"', '\\"') + '"'


def flag(value):
    return "true" if value == "1" else "false"


HEAD = """// SPDX-License-Identifier: Apache-2.0
// Generated from data/golden/gpus.tsv by tools/make_gpu_table.py; change the rows there.
#include "facts/gpus.h"

namespace plimsoll::facts {
namespace {

constexpr GpuFacts kGpus[] = {
"""
TAIL = """};

}  // namespace

std::span<const GpuFacts> all_gpus() {
  return kGpus;
}

}  // namespace plimsoll::facts
"""
COLUMNS = [("gpu", text), ("vendor", text), ("mem_mib_driver", number), ("bw_GBs", number),
           ("bf16_dense_TFLOPS", number), ("fp8_dense_TFLOPS", number), ("int8_dense_TOPS", number),
           ("fp4_dense_TFLOPS", number), ("link_GBs_total", number), ("link", text), ("compute_cap", text),
           ("fp8_hw", flag), ("fp4_hw", flag), ("source", text)]

with open("src/facts/gpus_table.cpp", "w", encoding="utf-8") as out:
    out.write(HEAD)
    for row in rows:
        out.write("    {" + ", ".join(write(row[name]) for name, write in COLUMNS) + "},\n")
    out.write(TAIL)
