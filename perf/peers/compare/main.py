# SPDX-License-Identifier: Apache-2.0
"""plimsoll and other engines in turn, on the same files, with the same client: `plimsoll bench`."""
import argparse
import dataclasses
import json
import os
import sys
import time
from pathlib import Path

import client
import machine
import models
import parts
import servers
import table

ROOT = Path(__file__).resolve().parents[3]


@dataclasses.dataclass
class Places:
    plimsoll: Path
    peers: Path
    models: Path
    plimsoll_flags: tuple = ()
    widest_llama: str = "avx2"


def say(*words):
    print(*words, file=sys.stderr, flush=True)


def begin(engines, model, shape, places, logs):
    """Servers that run, each stopped again until its turn."""
    running = {}
    for key in engines:
        server = None
        try:
            server = servers.ENGINES[key](model, shape, places, logs)
            server.wait()
            client.run(places.plimsoll, client.Load(32, 4, 2, 99), server, places.models / models.TOKENIZER)
            server.freeze()
            running[key] = server
        except (servers.NotStarted, client.Failed) as reason:
            say(reason)
            if server:
                server.stop()
    return running


def measure(part, key, server, places, number, quick):
    """The figures of one engine's turn, and how many cores others used meanwhile."""
    tokenizer = places.models / models.TOKENIZER
    seed = 1000 * (1 + parts.PARTS.index(part)) + number
    turn = parts.Turn(places.plimsoll, server, tokenizer, seed, quick)
    server.thaw()
    try:
        client.run(places.plimsoll, client.Load(16, 8, 1, seed + 500), server, tokenizer)
        began, all_before, own_before = time.monotonic(), machine.busy_s(), machine.used_s(server.pid) + machine.children_s()
        figures = part.measure(turn)
        own = machine.used_s(server.pid) + machine.children_s() - own_before
        others = max(0.0, machine.busy_s() - all_before - own) / (time.monotonic() - began)
    finally:
        server.freeze()
    return figures, others


def run_group(chosen, model, shape, arguments, places, limits, rows, logs):
    wanted = [key for key in arguments.peers if any(key in part.engines for part in chosen)]
    running = begin(wanted, model, shape, places, logs)
    try:
        for number in range(arguments.rounds):
            for part in chosen:
                now = limits.measure()
                for key in [key for key in running if key in part.engines]:
                    try:
                        figures, others = measure(part, key, running[key], places, number, arguments.quick)
                    except client.Failed as reason:
                        say(f"{part.name}, {model.name}, {key}: {reason}")
                        continue
                    rows.append({"part": part.name, "model": model.name, "engine": key, "round": number, "isa": None,
                                 "at": time.strftime("%Y-%m-%d %H:%M", time.gmtime()), "figures": figures, "limits": now,
                                 "others_cores": round(others, 2)})
                    say(f"round {number + 1}, {part.name}, {model.name}, {key}:",
                        ", ".join(f"{name} {value:,.1f}" for name, value in figures.items()), f"(others: {others:.2f} cores)")
    finally:
        for server in running.values():
            server.stop()


def names(text, known):
    chosen = text.split(",")
    unknown = [name for name in chosen if name not in known]
    if unknown:
        raise SystemExit(f"unknown: {', '.join(unknown)}; known are {', '.join(known)}")
    return chosen


def arguments_of(words):
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--plimsoll", type=Path, default=ROOT / "build/release/plimsoll")
    parser.add_argument("--only", default=",".join(part.name for part in parts.PARTS), help="parts, by comma")
    parser.add_argument("--models", default="", help="model names, by comma; all of a part unless given")
    parser.add_argument("--peers", default=",".join(servers.ENGINES), help="engines, by comma")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--quick", action="store_true", help="one round, shorter loads")
    parser.add_argument("--peers-dir", type=Path, default=ROOT / "build/peers_engines")
    parser.add_argument("--models-dir", type=Path, default=ROOT / "build/peers_models")
    parser.add_argument("--out", type=Path, default=None, help="the results as JSON")
    parser.add_argument("--serve-flag", action="append", default=[], help="one more flag for `plimsoll serve`")
    found = parser.parse_args(words)
    found.only = names(found.only, [part.name for part in parts.PARTS])
    found.peers = names(found.peers, list(servers.ENGINES))
    found.models = names(found.models, list(models.MODELS)) if found.models else []
    if found.quick:
        found.rounds = 1
    return found


def main():
    arguments = arguments_of(sys.argv[1:])
    places = Places(arguments.plimsoll.resolve(), arguments.peers_dir.resolve(), arguments.models_dir.resolve(),
                    tuple(arguments.serve_flag))
    logs = places.peers / "logs"
    logs.mkdir(parents=True, exist_ok=True)
    limits = machine.Limits(places.peers, servers.THREADS)
    results = {"schema": "plimsoll.peers/1", "machine": machine.description(servers.THREADS), "rows": []}
    chosen = [part for part in parts.PARTS if part.name in arguments.only]
    try:
        for name in models.MODELS:
            if arguments.models and name not in arguments.models:
                continue
            for shape in dict.fromkeys(part.shape for part in chosen):
                group = [part for part in chosen if part.shape == shape and name in part.models]
                if group:
                    run_group(group, models.had(name, places.models), shape, arguments, places, limits, results["rows"], logs)
    finally:
        if arguments.out:
            arguments.out.write_text(json.dumps(results, indent=1) + "\n")
    print(table.plain(results))
    return 0 if results["rows"] else 1
