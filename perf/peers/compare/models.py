# SPDX-License-Identifier: Apache-2.0
"""The models that are measured, made when they are not there: real weights of a small model in four forms, and random weights of
larger shapes, whose speed is that of any weights of the shape.

SmolLM2-135M comes from a registry as Q4_1; llama-quantize widens that file to bf16 and rounds it to the other forms.
"""
import dataclasses
import json
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
TOKENIZER = "smollm2-q4_1.gguf"

# name -> (file it is rounded from, llama-quantize's word); bf16 files of shapes are written by gguf_shapes.py.
ROUNDED = {
    "smollm2-bf16": ("smollm2-q4_1", "BF16"),
    "smollm2-q4_0": ("smollm2-bf16", "Q4_0"),
    "smollm2-q8_0": ("smollm2-bf16", "Q8_0"),
    "qwen3-0.6b-q8_0": ("qwen3-0.6b-bf16", "Q8_0"),
    "qwen3-0.6b-q4_k_m": ("qwen3-0.6b-bf16", "Q4_K_M"),
    "moe-q8_0": ("moe-bf16", "Q8_0"),
}
SHAPES = {"qwen3-0.6b-bf16": "qwen3-0.6b", "moe-bf16": "moe"}
MODELS = ("smollm2-q4_0", "smollm2-q4_1", "smollm2-q8_0", "smollm2-bf16", "qwen3-0.6b-q4_k_m", "qwen3-0.6b-q8_0", "qwen3-0.6b-bf16",
          "moe-q8_0")


@dataclasses.dataclass(frozen=True)
class Model:
    name: str
    file: Path


def made(name, places, say):
    """The model's file, made first when it is missing, with all that it is made of."""
    target = places.models / f"{name}.gguf"
    if target.exists():
        return target
    places.models.mkdir(parents=True, exist_ok=True)
    say(f"making {target.name}")
    part = target.with_suffix(".part")
    if name in ROUNDED:
        source, kind = ROUNDED[name]
        folder = places.peers / f"llama-{places.llama}" / "bin"
        subprocess.run([str(folder / "llama-quantize"), "--allow-requantize", str(made(source, places, say)), str(part), kind, "2"],
                       check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env={"LD_LIBRARY_PATH": str(folder)})
    elif name in SHAPES:
        subprocess.run([str(places.peers / "tools/bin/python"), str(HERE / "gguf_shapes.py"), SHAPES[name],
                        str(made("smollm2-q4_1", places, say)), str(part)], check=True)
    else:
        fetched = subprocess.run([sys.executable, str(ROOT / "tools/fetch_model")], check=True, stdout=subprocess.PIPE, text=True)
        part.symlink_to(fetched.stdout.strip())
    part.rename(target)
    return target


def had(name, places, say):
    return Model(name, made(name, places, say))


def facts(model, plimsoll):
    """What a row's shares are worked out with: bytes of all weights, parameters and attention's operations per token and key."""
    done = subprocess.run([str(plimsoll), "inspect", str(model.file), "--format", "json"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    told = json.loads(done.stdout)
    keys = sum(4 * layers["count"] * layers["q_heads"] * layers["head_dim"] for layers in told["layers"])
    return {"name": model.name, "weights_bytes": told["weights"]["bytes"], "parameters": told["parameters"]["active_without_embedding"],
            "attention_ops": keys, "file_bytes": model.file.stat().st_size}
