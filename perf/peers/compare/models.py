# SPDX-License-Identifier: Apache-2.0
"""The models that are measured."""
import dataclasses
from pathlib import Path

TOKENIZER = "smollm2-q4_1.gguf"
MODELS = {name: f"{name}.gguf" for name in ("smollm2-q4_0", "smollm2-q8_0", "smollm2-bf16", "smollm2-q4_1")}


@dataclasses.dataclass(frozen=True)
class Model:
    name: str
    file: Path


def had(name, folder):
    return Model(name, folder / MODELS[name])
