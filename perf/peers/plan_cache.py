#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The cache that `plimsoll plan` foretells beside llm-d-planner's, on recorded starts of vLLM: the same rows, in GiB.

usage: plan_cache.py FIT_RUNTIME PLIMSOLL GOLDEN [--models FILE]
FIT_RUNTIME is plimsoll_fit_runtime, GOLDEN holds startup_logs. llm-d-planner 0.3.3 (pip install --no-deps, and pydantic) reads hubs
only, so it is given the weights that each log prints: its error is that of activations and what is outside of torch.
Rows are those whose cache, weights, model and GPU are known; all count alike here.
"""
import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import types

PLANNER = "0.3.3"


def catalogue_ids(path: pathlib.Path) -> dict[str, str]:
    """Model as a record names it -> id in the catalogue."""
    lines = [line.split("\t") for line in path.read_text().splitlines() if "\t" in line and line[0] not in "#!~^=+?"]
    return {cells[0]: cells[1] for cells in lines}


def rows_of(command: list[str]) -> list[dict]:
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    rows = []
    for line in printed.splitlines()[1:]:
        if line[:27].strip() == "" or ":" in line[:40]:
            continue
        cells = line[67:].split()
        if len(cells) < 7 or "-" in (cells[3], cells[4]):
            continue
        rows.append({"row": line[:26].strip(), "model": line[37:66].strip(), "tp": int(cells[0]),
                     "overhead": float(cells[1]), "kv": float(cells[3]), "ours": float(cells[4])})
    return rows


def config_of(plimsoll: str, model: str) -> types.SimpleNamespace:
    """What the planner looks at: the architecture, and whether there are experts."""
    command = [plimsoll, "inspect", model, "--format", "json"]
    printed = subprocess.run(command, capture_output=True, text=True, env={"HF_HUB_OFFLINE": "1"}, check=False).stdout
    found = json.loads(printed)
    config = types.SimpleNamespace(architectures=[found["model"]["architecture"]])
    if found["parameters"]["active"] != found["parameters"]["total"]:
        config.num_experts = 2
    return config


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("fit_runtime")
    parser.add_argument("plimsoll")
    parser.add_argument("golden", type=pathlib.Path)
    parser.add_argument("--models", type=pathlib.Path, default=pathlib.Path(__file__).parents[2] / "data/startup_models.tsv")
    flags = parser.parse_args()
    from importlib import metadata

    from planner import capacity_planner as planner

    if metadata.version("llm-d-planner") != PLANNER:
        sys.exit(f"llm-d-planner {PLANNER} is asked for, {metadata.version('llm-d-planner')} is there")
    logs = flags.golden / "startup_logs"
    rows = rows_of([flags.fit_runtime, str(logs / "startup_logs.jsonl"), str(logs / "vllm_measured.tsv"),
                    str(flags.models), "--eligible"])
    ids = catalogue_ids(flags.models)
    ours, theirs = [], []
    for row in rows:
        names = {known for name, known in ids.items() if name.startswith(row["model"])}
        config = config_of(flags.plimsoll, names.pop())
        used = planner.estimate_vllm_activation_memory(config) + planner.estimate_vllm_non_torch_memory(row["tp"])
        peer = row["kv"] + row["overhead"] - used
        ours.append(abs(row["ours"] - row["kv"]))
        theirs.append(abs(peer - row["kv"]))
        print(f"{row['row']:26} {row['model']:29} tp {row['tp']}  logged {row['kv']:6.2f}  "
              f"plimsoll {row['ours']:6.2f} ({row['ours'] - row['kv']:+.2f})  llm-d {peer:6.2f} ({peer - row['kv']:+.2f})")
    print(f"{len(rows)} rows; median error: plimsoll {statistics.median(ours):.2f} GiB, "
          f"llm-d-planner {statistics.median(theirs):.2f} GiB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
