# SPDX-License-Identifier: Apache-2.0
"""What every end-to-end test starts from: the binary, the golden data, the real model.

PLIMSOLL_BIN is the program under test. PLIMSOLL_GOLDEN names the full golden sets when they are at hand; without it
the copies in data/golden are used. PLIMSOLL_SMOLLM2 is the demo's model; tests that need it are skipped without.
"""
import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


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
