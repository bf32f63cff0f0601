# SPDX-License-Identifier: Apache-2.0
"""The machine: what it is, what it can do in this minute, and how much of it others use."""
import hashlib
import json
import os
import platform
import re
import resource
import subprocess
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
QUIET_CORES = 0.3  # what others may use in a turn that is judged: engines suffer differently from a busy neighbour
TICKS = os.sysconf("SC_CLK_TCK")


# The kernels' instruction sets, narrowest first, and what of /proc/cpuinfo each asks for.
SETS = {
    "avx2": {"avx2", "fma", "f16c"},
    "avx512": {"avx512f", "avx512bw", "avx512dq", "avx512vl"},
    "avx512_vnni": {"avx512_vnni"},
    "avx512_bf16": {"avx512_bf16"},
}


def sets():
    """Those of this machine, narrowest first."""
    flags = set(re.search(r"^flags\s*: (.*)", Path("/proc/cpuinfo").read_text(), re.MULTILINE)[1].split())
    found = []
    for name, asked in SETS.items():
        if not asked <= flags:
            break
        found.append(name)
    return found


def description(threads):
    text = Path("/proc/cpuinfo").read_text()
    model = re.search(r"model name\s*: (.*)", text)
    compiler = subprocess.run(["c++", "--version"], stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines()[0]
    return {"processor": model[1] if model else platform.machine(), "cores": os.cpu_count(), "instructions": sets(), "threads": threads,
            "compiler": compiler, "kernel": platform.release(), "nice": os.nice(0)}


def program(path):
    """Which plimsoll was measured: commit of the checkout that it lies in, if it lies in one, and the file's own digest."""
    commit = subprocess.run(["git", "-C", str(path.parent), "rev-parse", "--short", "HEAD"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                            text=True, check=False).stdout.strip()
    return {"commit": commit or None, "sha256": hashlib.sha256(path.read_bytes()).hexdigest()}


class Limits:
    """Read bandwidth, barrier time and peaks, measured when asked."""

    def __init__(self, folder, threads):
        self.program, self.threads = folder / "limits", threads
        source = ROOT / "perf/limits.cpp"
        if not self.program.exists() or self.program.stat().st_mtime < source.stat().st_mtime:
            subprocess.run(["c++", "-O2", "-std=c++20", "-pthread", "-o", str(self.program), str(source)], check=True)

    def measure(self, patience_s):
        """Of the next moment in which others leave the cores alone, or of now when none comes in that time."""
        wait_for_quiet(patience_s)
        return json.loads(subprocess.run([str(self.program), str(self.threads)], stdout=subprocess.PIPE, text=True, check=True).stdout)


def busy_s():
    """Core seconds that all processes have used since the machine started, those taken by its host included."""
    fields = [int(word) for word in Path("/proc/stat").read_text().splitlines()[0].split()[1:9]]
    user, nice, system, _, _, interrupts, soft, stolen = fields
    return (user + nice + system + interrupts + soft + stolen) / TICKS


def wait_for_quiet(patience_s):
    """Until others leave the cores alone for half a second. What is to be measured has to stand still meanwhile."""
    deadline = time.monotonic() + patience_s
    while time.monotonic() < deadline:
        began, before = time.monotonic(), busy_s()
        time.sleep(0.5)
        if busy_s() - before <= QUIET_CORES * (time.monotonic() - began):
            return


def used_s(pid):
    """Core seconds of a process, all threads."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def children_s():
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime
