# SPDX-License-Identifier: Apache-2.0
"""`verify --follow` on logs that grow, on pipes, and stopped by a signal."""
import json
import os
import signal
import subprocess
from pathlib import Path

import pytest

LINES = [
    "Model loading took 14.99 GiB memory and 3.1 seconds",
    "Available KV cache memory: 50.00 GiB",
    "GPU KV cache size: 409,600 tokens",
]
READY = "init engine (profile, create kv cache, warmup model) took 20.0 seconds"


def follow(binary: str, log: str, **kwargs) -> subprocess.Popen:
    return subprocess.Popen([binary, "verify", "--follow", log, "--format", "json"], stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True, **kwargs)


def append(path: Path, line: str) -> None:
    with path.open("a") as file:
        file.write(line + "\n")


def answer(running: subprocess.Popen) -> dict:
    text, _ = running.communicate(timeout=60)
    return json.loads(text)


def test_a_growing_file_is_read_until_the_engine_serves(binary: str, tmp_path: Path) -> None:
    log = tmp_path / "serve.log"
    log.touch()
    running = follow(binary, str(log))
    for line in LINES:
        append(log, line)
        with pytest.raises(subprocess.TimeoutExpired):
            running.wait(timeout=0.3)
    append(log, READY)
    document = answer(running)
    assert running.returncode == 0
    assert document["log"]["kv_tokens"] == 409_600 and document["log"]["ready"] is True


def test_a_pipe_that_stays_open_ends_with_the_start(binary: str) -> None:
    running = follow(binary, "-", stdin=subprocess.PIPE)
    running.stdin.write("\n".join([*LINES, READY, ""]))
    running.stdin.flush()
    assert running.wait(timeout=60) == 0
    assert answer(running)["log"]["ready"] is True


def test_a_refusal_ends_it_and_is_exit_1(binary: str, tmp_path: Path) -> None:
    log = tmp_path / "serve.log"
    log.write_text("ValueError: No available memory for the cache blocks.\n")
    running = follow(binary, str(log))
    assert answer(running)["log"]["failed"] is True
    assert running.returncode == 1


def test_a_signal_ends_it_with_what_was_read(binary: str, tmp_path: Path) -> None:
    fifo = tmp_path / "pipe"
    os.mkfifo(fifo)
    running = follow(binary, str(fifo))
    with fifo.open("w") as writer:
        writer.write(LINES[0] + "\n")
        writer.flush()
        with pytest.raises(subprocess.TimeoutExpired):
            running.wait(timeout=0.5)
        running.send_signal(signal.SIGINT)
        document = answer(running)
    assert running.returncode == 0
    assert document["log"]["weights_bytes"] is not None and document["log"]["ready"] is False


def test_a_file_that_is_cut_is_read_anew(binary: str, tmp_path: Path) -> None:
    log = tmp_path / "serve.log"
    log.write_text("Model loading took 99.00 GiB memory and 3.1 seconds\n" * 20)
    running = follow(binary, str(log))
    with pytest.raises(subprocess.TimeoutExpired):
        running.wait(timeout=0.6)
    log.write_text("\n".join([*LINES, READY, ""]))
    document = answer(running)
    assert document["log"]["kv_tokens"] == 409_600
