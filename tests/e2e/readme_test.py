# SPDX-License-Identifier: Apache-2.0
"""The commands of the READMEs run and print what the READMEs show.

Taken are the ```console blocks. Of what they show, the words of each line have to come out in the same order; numbers
are compared only in lines that hold the same everywhere (EXACT). `...` stands for lines left out.
"""
import os
import re
import shlex
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
READMES = ["README.md", "README.ko.md"]
EXACT = ("KV per token", "KV bytes per token", "weight bytes", "total context", "8B ", "70B ", "Llama 3.1")
# Shown in the READMEs but run by other means: the two set-up commands are how this test came to run.
SETUP = {"demo", "test"}


def blocks(readme: str) -> list[tuple[list[str], list[str]]]:
    """(arguments after ./run, shown output) of each command in the console blocks."""
    found = []
    for block in re.findall(r"^```console\n(.*?)^```", (ROOT / readme).read_text(), re.DOTALL | re.MULTILINE):
        for part in re.split(r"^\$ ", block.replace("\\\n", " "), flags=re.MULTILINE)[1:]:
            command, _, shown = part.partition("\n")
            words = shlex.split(command)
            while words and re.fullmatch(r"[A-Z_]+=\S*", words[0]):  # what it sets holds for all tests: conftest.py
                words.pop(0)
            if words[:1] == ["./run"]:
                found.append((words[1:], [line for line in shown.splitlines() if line.strip()]))
    return found


def masked(line: str) -> str:
    words = " ".join(line.split())
    return words if words.startswith(EXACT) else re.sub(r"\d[\d.,]*", "#", words)


def assert_shown(shown: list[str], printed: str) -> None:
    printed_lines = [masked(line) for line in printed.splitlines()]
    at = 0
    for line in shown:
        if line.strip() == "...":
            continue
        wanted = masked(line)
        assert wanted in printed_lines[at:], f"the README shows `{wanted}`; printed was:\n{printed}"
        at = printed_lines.index(wanted, at) + 1


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def wait_until_healthy(server: subprocess.Popen, port: int) -> None:
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        assert server.poll() is None, f"the server ended with {server.returncode}"
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=5) as answer:
                if answer.status == 200:
                    return
        except (urllib.error.URLError, OSError):
            time.sleep(0.05)  # polling a process that is starting; nothing is inferred from the time it takes
    raise AssertionError("the server did not become healthy")


def test_both_readmes_show_the_same_commands():
    english, korean = ([words for words, _ in blocks(name)] for name in READMES)
    assert english == korean
    assert [words[0] for words in english][:2] == ["demo", "test"]


@pytest.mark.parametrize("readme", READMES)
def test_commands_print_what_is_shown(readme, binary, smollm2, tmp_path):
    port = free_port()
    server = None
    ran = 0
    try:
        for words, shown in blocks(readme):
            if words[0] in SETUP:
                continue
            words = [word.replace("~/.cache/plimsoll/SmolLM2-135M-Instruct.Q4_1.gguf", smollm2).replace(
                "8000", str(port)) for word in words]
            if words[0] == "serve":
                server = subprocess.Popen([binary, *words], cwd=tmp_path, stdout=subprocess.DEVNULL,
                                          stderr=subprocess.DEVNULL, env={**os.environ, "NO_COLOR": "1"})
                wait_until_healthy(server, port)
            else:
                done = subprocess.run([binary, *words], cwd=tmp_path, capture_output=True, text=True, timeout=300)
                assert done.returncode == 0, f"{words}: {done.stderr}"
                assert_shown(shown, done.stdout)
            ran += 1
    finally:
        if server is not None:
            server.send_signal(signal.SIGTERM)
            try:
                server.wait(timeout=30)
            except subprocess.TimeoutExpired:
                server.kill()
    assert ran >= 4
    assert server is not None and server.returncode == 0
