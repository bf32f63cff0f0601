# SPDX-License-Identifier: Apache-2.0
"""What every end-to-end test starts from: the binary, the golden data, the real model.

PLIMSOLL_BIN is the program under test. PLIMSOLL_GOLDEN names the full golden sets when they are at hand; without it
the copies in data/golden are used. PLIMSOLL_SMOLLM2 is the demo's model; tests that need it are skipped without.
"""
import os
import re
import signal
import subprocess
import threading
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
# No test asks the real hub; those of the hub client name their stand-in in an environment of their own.
os.environ["HF_HUB_OFFLINE"] = "1"


@pytest.fixture(scope="session")
def binary() -> str:
    path = os.environ.get("PLIMSOLL_BIN", str(ROOT / "build/release/plimsoll"))
    assert os.access(path, os.X_OK), f"{path} is not there; ./run build makes it"
    return path


@pytest.fixture(scope="session")
def run(binary):
    """Runs the binary to its end and returns exit status, stdout and stderr."""

    def call(*arguments: str, **options) -> subprocess.CompletedProcess:
        options.setdefault("timeout", 120)
        return subprocess.run([binary, *arguments], capture_output=True, text=True, **options)

    return call


@pytest.fixture(scope="session")
def golden():
    """Path of a file or folder in the full golden sets, else of its copy in data/golden."""

    def find(relative: str) -> Path:
        full = Path(os.environ.get("PLIMSOLL_GOLDEN", "")) / relative
        if os.environ.get("PLIMSOLL_GOLDEN") and full.exists():
            return full
        return ROOT / "data/golden" / relative

    return find


@pytest.fixture(scope="session")
def smollm2() -> str:
    path = os.environ.get("PLIMSOLL_SMOLLM2", "")
    if not path:
        pytest.skip("PLIMSOLL_SMOLLM2 is not set: the demo's model could not be fetched")
    return path


class Server:
    """`plimsoll serve` on a free port, from its line "Listening on URL" to SIGTERM."""

    def __init__(self, binary: str, model: str, *flags: str):
        self.log: list[str] = []
        self.url = ""
        self.process = subprocess.Popen([binary, "serve", model, "--port", "0", *flags], stdout=subprocess.DEVNULL,
                                        stderr=subprocess.PIPE, text=True)
        self._listening = threading.Event()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        assert self._listening.wait(120), "the server did not start:\n" + "".join(self.log)
        assert self.url, f"the server ended with {self.process.wait(10)}:\n" + "".join(self.log)

    def _read(self) -> None:
        for line in self.process.stderr:
            self.log.append(line)
            if match := re.match(r"Listening on (\S+)", line):
                self.url = match[1].rstrip("/")
                self._listening.set()
        self._listening.set()

    def stop(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(timeout=60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise


@pytest.fixture(scope="module")
def start_server(binary):
    """Starts servers that end with the module, each with exit status 0."""
    servers: list[Server] = []

    def start(model, *flags: str) -> Server:
        servers.append(Server(binary, str(model), *flags))
        return servers[-1]

    yield start
    statuses = [server.stop() for server in servers]
    assert statuses == [0] * len(servers)
