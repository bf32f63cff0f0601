#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`plimsoll inspect FOLDER` beside hf-mem on the same folder: whole processes, warm, taking turns.

usage: inspect_folder.py PLIMSOLL FOLDER [--rounds N]
hf-mem reads hubs only; its HTTP transport is replaced by one that answers from the folder, so that no network is
in its time. Both must give the same weight bytes, or the run ends red.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time


def hf_mem(folder: str) -> None:
    import httpx2
    from hf_mem import cli

    root = pathlib.Path(folder)

    async def answer(request):
        path = request.url.path
        if "/tree/" in path:
            listing = [{"type": "file", "path": f.name, "size": f.stat().st_size} for f in root.iterdir()]
            return httpx2.Response(200, json=listing)
        file = root / path.rsplit("/", 1)[-1]
        if not file.is_file():
            return httpx2.Response(404)
        wanted = request.headers.get("range")
        with open(file, "rb") as handle:
            if not wanted:
                return httpx2.Response(200, content=handle.read())
            first, last = wanted.removeprefix("bytes=").split("-")
            handle.seek(int(first))
            return httpx2.Response(206, content=handle.read(int(last) - int(first) + 1))

    plain = httpx2.AsyncClient.__init__

    def patched(self, *args, **kwargs):
        kwargs["transport"] = httpx2.MockTransport(answer)
        kwargs.pop("http2", None)
        plain(self, *args, **kwargs)

    httpx2.AsyncClient.__init__ = patched
    sys.argv = ["hf-mem", "--model-id", "local/folder", "--json-output"]
    cli.main()


def run(command):
    start = time.perf_counter()
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False)
    return (time.perf_counter() - start) * 1e3, done.stdout


def take_turns(commands, rounds):
    """Milliseconds of each command, by name and round; a first round warms up and is left out."""
    times = {name: [] for name in commands}
    for _ in range(rounds + 1):
        for name, command in commands.items():
            times[name].append(run(command)[0])
    times = {name: values[1:] for name, values in times.items()}
    for name, values in times.items():
        print(f"{name:11} least {min(values):8.1f} ms, median {statistics.median(values):8.1f}, most {max(values):8.1f}")
    return times


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("plimsoll")
    parser.add_argument("folder")
    parser.add_argument("--rounds", type=int, default=9)
    args = parser.parse_args()
    commands = {
        "plimsoll": [args.plimsoll, "inspect", args.folder],
        "hf-mem": [sys.executable, os.path.abspath(__file__), "--hf-mem", args.folder],
    }
    _, ours = run([args.plimsoll, "inspect", args.folder, "--format", "json"])
    _, theirs = run(commands["hf-mem"])
    weights = json.loads(ours)["weights"]["bytes"]
    memory = json.loads(theirs)["memory"]
    print(f"weight bytes: plimsoll {weights:,}, hf-mem {memory:,}")
    times = take_turns(commands, args.rounds)
    ratios = sorted(b / a for a, b in zip(times["plimsoll"], times["hf-mem"]))
    print(f"hf-mem takes {statistics.median(ratios):.0f} times as long ({ratios[0]:.0f} to {ratios[-1]:.0f})")
    return 0 if weights == memory else 1


if __name__ == "__main__":
    if sys.argv[1:2] == ["--hf-mem"]:
        hf_mem(sys.argv[2])
        sys.exit(0)
    sys.exit(main())
