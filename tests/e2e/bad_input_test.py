# SPDX-License-Identifier: Apache-2.0
"""Bad input ends with a clear sentence and the right exit status, never with a crash."""
import json
import shutil
import socket
from pathlib import Path

import pytest

CORPUS = Path(__file__).resolve().parents[2] / "fuzz/corpus"


def refused(done, status: int, *words: str):
    assert done.returncode == status, (done.returncode, done.stdout, done.stderr)
    assert 1 <= len(done.stderr.strip().splitlines()) <= 3, done.stderr
    for word in words:
        assert word in done.stderr, done.stderr


@pytest.fixture
def broken(golden, tmp_path):
    """A copy of a golden model folder to break."""

    def copy(name: str) -> Path:
        folder = tmp_path / name
        shutil.copytree(golden(f"models/{name}"), folder, copy_function=shutil.copyfile)
        folder.chmod(0o755)
        return folder

    return copy


def test_a_truncated_shard(run, broken):
    folder = broken("llama_sharded")
    shard = folder / "model-00003-of-00006.safetensors"
    shard.write_bytes(shard.read_bytes()[:-1000])
    done = run("inspect", str(folder), "--format", "json")
    assert done.returncode == 3
    findings = {finding["id"]: finding for finding in json.loads(done.stdout)["findings"]}
    assert "model-00003-of-00006.safetensors" in findings["ST_TRUNCATED"]["where"]
    refused(run("generate", str(folder), "--prompt", "x"), 3, "model-00003-of-00006.safetensors")


def test_a_gguf_with_an_absurd_count(run, tmp_path):
    model = tmp_path / "absurd.gguf"
    shutil.copyfile(CORPUS / "gguf/gguf_tensor_count_huge", model)
    done = run("inspect", str(model), "--format", "json")
    assert done.returncode == 3
    assert json.loads(done.stdout)["verdict"] == "error"
    refused(run("generate", str(model), "--prompt", "x"), 3, "absurd.gguf")


def test_an_unknown_architecture(run, broken):
    folder = broken("llama_plain")
    config = json.loads((folder / "config.json").read_text())
    config.update(architectures=["NoSuchForCausalLM"], model_type="no_such")
    (folder / "config.json").write_text(json.dumps(config))
    done = run("inspect", str(folder), "--format", "json")
    assert done.returncode == 4
    assert json.loads(done.stdout)["verdict"] == "error"
    refused(run("serve", str(folder), "--port", "0"), 4, "NoSuchForCausalLM")


def test_a_port_in_use(run, golden):
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        port = str(holder.getsockname()[1])
        refused(run("serve", str(golden("models/llama_plain")), "--port", port), 5, port)


def test_a_pool_too_small_for_one_token(run, golden):
    done = run("serve", str(golden("models/llama_plain")), "--port", "0", "--kv-cache-memory-bytes", "1")
    refused(done, 1)


def test_an_error_is_json_when_asked(run, tmp_path):
    done = run("generate", str(tmp_path / "absent"), "--prompt", "x", "--format", "json")
    assert done.returncode == 3
    document = json.loads(done.stdout)
    assert document["schema"] == "plimsoll.error/1"
    assert document["error"]["code"] == "malformed"
    assert "absent" in document["error"]["where"] + document["error"]["message"]
