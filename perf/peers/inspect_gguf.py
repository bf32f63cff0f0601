#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`plimsoll inspect FILE` beside gguf-parser on the same GGUF file: whole processes, warm, taking turns.

usage: inspect_gguf.py PLIMSOLL GGUF_PARSER FILE [--rounds N]
GGUF_PARSER is the program of gpustack/gguf-parser-go: `go install github.com/gpustack/gguf-parser-go/cmd/gguf-parser@v0.24.0`.
Both must read the same context and the same number of layers, or the run ends red.
"""
import argparse
import json
import statistics
import sys

from inspect_folder import run, take_turns


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("plimsoll")
    parser.add_argument("gguf_parser")
    parser.add_argument("file")
    parser.add_argument("--rounds", type=int, default=25)
    args = parser.parse_args()
    commands = {
        "plimsoll": [args.plimsoll, "inspect", args.file, "--format", "json"],
        "gguf-parser": [args.gguf_parser, "--path", args.file, "--json"],
    }
    ours = json.loads(run(commands["plimsoll"])[1])
    theirs = json.loads(run(commands["gguf-parser"])[1])["architecture"]
    layers = sum(one["count"] for one in ours["layers"])
    context = ours["context"]["max_model_len"]
    print(f"layers: plimsoll {layers}, gguf-parser {theirs['blockCount']}; "
          f"context: plimsoll {context}, gguf-parser {theirs['maximumContextLength']}")
    times = take_turns(commands, args.rounds)
    ratios = sorted(a / b for a, b in zip(times["plimsoll"], times["gguf-parser"]))
    print(f"plimsoll takes {statistics.median(ratios):.2f} times as long ({ratios[0]:.2f} to {ratios[-1]:.2f})")
    return 0 if (layers, context) == (theirs["blockCount"], theirs["maximumContextLength"]) else 1


if __name__ == "__main__":
    sys.exit(main())
