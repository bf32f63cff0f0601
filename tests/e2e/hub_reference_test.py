# SPDX-License-Identifier: Apache-2.0
"""huggingface_hub, the client that most models are downloaded with, finds the stand-in to be a hub.

What satisfies the reference may judge ours (hub_test.py). Each call runs in a process of its own, because the client
reads its environment once, when it is imported.
"""
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hub_repo import File, safetensors
from hub_server import Hub

TOKEN = "hf_" + "s" * 30


@pytest.fixture
def hub():
    with Hub() as made:
        yield made


@pytest.fixture
def reference(hub, tmp_path):
    """Runs one expression of huggingface_hub against the hub; the answer is its value, or the class of its error."""
    work = """
import json, sys
import huggingface_hub as hf
try:
    value = eval(sys.argv[1])
    print(json.dumps({"value": value}))
except Exception as error:
    print(json.dumps({"error": type(error).__name__, "message": str(error)}))
"""

    def call(expression: str, **environment: str) -> dict:
        settings = {"HF_ENDPOINT": hub.endpoint, "HF_HOME": str(tmp_path / "home"), "HF_HUB_DISABLE_PROGRESS_BARS": "1",
                    "HF_HUB_DISABLE_XET": "1", "PATH": os.environ["PATH"], "HOME": str(tmp_path)} | environment
        done = subprocess.run([sys.executable, "-c", work, expression], env=settings, capture_output=True, text=True,
                              timeout=60)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return call


def small_model() -> dict:
    return {"config.json": {"architectures": ["LlamaForCausalLM"], "model_type": "llama"}, "README.md": "# A card\n",
            "model.safetensors": safetensors({"a.weight": ("F32", (16, 16), 1024)}), "sub/notes.txt": "deep\n"}


def test_a_snapshot(hub, reference, tmp_path):
    repo = hub.repo("org/small", small_model())
    sha = repo.branches["main"]
    folder = Path(reference('hf.snapshot_download("org/small")')["value"])
    assert folder == tmp_path / f"home/hub/models--org--small/snapshots/{sha}"
    for path, file in repo.commits[sha].items():
        assert (folder / path).read_bytes() == file.read(0, file.size)
        assert (folder / path).resolve().name == file.etag
    assert (folder / "../../refs/main").read_text() == sha
