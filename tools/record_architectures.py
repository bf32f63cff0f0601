#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Records what transformers computes for tiny models, one file for each row of tools/architecture_rows.py.

usage: tools/record_architectures.py [NAME...]

Writes data/architectures/NAME.json; all rows without a name. Runs with torch 2.15 and transformers 5.23.0. The
weights are a formula of each tensor's name and index (`values`), so that a recording holds none and a test makes
the same ones (tests/testing/made_weights.h). A recording:

  config   config.json as transformers writes it
  tensors  [name, shape] as transformers stores them; "{1,2}" in a name stands for one tensor each
  prompt   token ids
  logits   of all positions of the prompt, row by row: 16-bit integers in base64, little end first
  step     what one of them stands for
  greedy   the tokens that follow the prompt, each ahead of the next best by 50 steps or more
"""
import base64
import importlib
import json
import re
import sys
import tempfile
from pathlib import Path

import numpy as np
import torch
from safetensors import safe_open
from safetensors.numpy import save_file
from transformers import AutoConfig

sys.path.insert(0, str(Path(__file__).resolve().parent))
from architecture_rows import ROWS

# Tables that a model computes from its config and stores all the same; left out of the files that it reads.
TABLES = re.compile(r"\.(slope_rate|\w+_decay)$")
PROMPT_TOKENS, GREEDY_TOKENS = 20, 16
TARGET = Path(__file__).resolve().parent.parent / "data/architectures"


def kind_of(name: str, dims: int) -> tuple[float, float]:
    """Middle and reach of a tensor's values."""
    parts = name.split(".")
    is_norm = parts[-1] == "weight" and (dims == 1 or (len(parts) > 1 and "norm" in parts[-2]))
    if is_norm:
        return 1.0, 0.25
    if parts[-1] == "A_log":
        return 1.0, 1.0
    return 0.0, 0.5 if "conv" in name else 0.25


def values(name: str, shape: list[int]) -> np.ndarray:
    """FNV-1a of the name, SplitMix64 from there on; the upper 24 bits of each are a number in [-1, 1)."""
    seed = 0xCBF29CE484222325
    for byte in name.encode():
        seed = (seed ^ byte) * 0x100000001B3 % 2**64
    count = int(np.prod(shape))
    with np.errstate(over="ignore"):
        z = np.uint64(seed) + np.arange(1, count + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        z ^= z >> np.uint64(31)
    unit = ((z >> np.uint64(40)).astype(np.int64) - 2**23).astype(np.float32) / np.float32(2**23)
    middle, reach = kind_of(name, len(shape))
    return (np.float32(middle) + np.float32(reach) * unit).reshape(shape)


def expanded(pattern: str) -> list[str]:
    found = re.search(r"\{([\d,]+)\}", pattern)
    if not found:
        return [pattern]
    before, behind = pattern[: found.start()], pattern[found.end() :]
    return [name for part in found[1].split(",") for name in expanded(before + part + behind)]


def grouped(shapes: dict[str, list[int]]) -> list[list]:
    """The tensors as patterns: names that differ in their numbers alone and share a shape."""
    families: dict[tuple, list[str]] = {}
    for name, shape in shapes.items():
        families.setdefault((re.sub(r"\.\d+\.", ".#.", re.sub(r"\.\d+\.", ".#.", name)), tuple(shape)), []).append(name)
    groups = []
    for (pattern, shape), names in families.items():
        places = [sorted({re.findall(r"\.(\d+)(?=\.)", name)[i] for name in names}, key=int)
                  for i in range(pattern.count("#"))]
        for place in places:
            pattern = pattern.replace("#", place[0] if len(place) == 1 else "{" + ",".join(place) + "}", 1)
        is_product = sorted(expanded(pattern)) == sorted(names)
        groups += [[pattern, list(shape)]] if is_product else [[name, list(shape)] for name in names]
    return groups


def class_of(config):
    """The causal language model of a config's kind."""
    module = importlib.import_module(type(config).__module__.replace("configuration_", "modeling_"))
    names = [name for name in dir(module) if name.endswith(("ForCausalLM", "LMHeadModel"))]
    return next(found for found in (getattr(module, name) for name in names) if found.config_class is type(config))


def load(config, folder: Path):
    """The model with the formula's weights, through the files that it stores; and their shapes."""
    kind = class_of(config)
    model = kind._from_config(config, attn_implementation="eager")
    model.float().save_pretrained(folder)
    shapes = {}
    with safe_open(folder / "model.safetensors", "np") as stored:
        for name in stored.keys():
            if not TABLES.search(name):
                shapes[name] = stored.get_slice(name).get_shape()
    tensors = {name: values(name, shape) for name, shape in shapes.items()}
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    model, info = kind.from_pretrained(
        folder, dtype=torch.float32, attn_implementation="eager", output_loading_info=True)
    info["missing_keys"] = {name for name in info["missing_keys"] if not TABLES.search(name)}
    wrong = {key: found for key, found in info.items() if found}
    if wrong:
        raise SystemExit(f"loading: {wrong}")
    return model.eval(), shapes


def run(model, prompt: list[int]) -> tuple[np.ndarray, list[int], float]:
    """Logits of the prompt, greedy tokens, and the least lead of one of them."""
    ids, first, lead = list(prompt), None, float("inf")
    for _ in range(GREEDY_TOKENS):
        with torch.no_grad():
            logits = model(torch.tensor([ids]), use_cache=False).logits[0].float().numpy()
        first = logits if first is None else first
        best = np.sort(logits[-1])
        lead = min(lead, float(best[-1] - best[-2]))
        ids.append(int(logits[-1].argmax()))
    return first, ids[len(prompt) :], lead


def record(name: str, model_type: str, overrides: dict) -> dict:
    config = AutoConfig.for_model(model_type, **overrides)
    with tempfile.TemporaryDirectory() as folder:
        model, shapes = load(config, Path(folder))
        stated = json.loads((Path(folder) / "config.json").read_text())
    vocab = stated.get("vocab_size", 64)
    for seed in range(40):
        prompt = [int(i) for i in np.random.RandomState(seed).randint(3, vocab, PROMPT_TOKENS)]
        logits, greedy, lead = run(model, prompt)
        step = float(np.abs(logits).max()) / 32767
        if lead > 50 * step:
            break
    else:
        raise SystemExit(f"{name}: no prompt leads to clear tokens")
    stated.pop("transformers_version", None)
    rows = np.round(logits / step).astype("<i2")
    return {"config": stated, "tensors": grouped(shapes), "prompt": prompt, "step": step,
            "logits": base64.b64encode(rows.tobytes()).decode(), "greedy": greedy}


def main() -> int:
    TARGET.mkdir(exist_ok=True)
    for name in sys.argv[1:] or ROWS:
        model_type, overrides = ROWS[name]
        recording = record(name, model_type, overrides)
        (TARGET / f"{name}.json").write_text(json.dumps(recording, separators=(",", ":")) + "\n")
        print(name, recording["config"]["architectures"], f"scale {recording['step'] * 32767:.2f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
