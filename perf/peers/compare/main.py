# SPDX-License-Identifier: Apache-2.0
"""plimsoll and other engines in turn, on the same files, with the same client (`plimsoll bench`).

Installs the peers, makes the models, measures, and writes the table into docs/performance.md; with --only, --models, --peers or
--quick the table goes to stdout alone, unless --page names the page. Everything measured has the nice value of this process.
"""
import argparse
import dataclasses
import json
import sys
import time
from pathlib import Path

import client
import install
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
    packed: Path
    plimsoll_flags: tuple
    llama: str  # the instruction set of the llama.cpp that is used unless a part is restricted


def say(*words):
    print(*words, file=sys.stderr, flush=True)


class Run:
    """All that one run measures, and where it keeps it."""

    def __init__(self, arguments, places, results, earlier):
        """`earlier`: rows that stay in the file and are not shown."""
        self.arguments, self.places, self.results, self.earlier = arguments, places, results, earlier
        arguments.out.parent.mkdir(parents=True, exist_ok=True)
        self.limits = machine.Limits(places.peers, servers.THREADS)
        self.logs = places.peers / "logs"
        self.logs.mkdir(exist_ok=True)
        self.tokenizer = models.made(Path(models.TOKENIZER).stem, places, say)

    def begun(self, key, model, shape, isa):
        """A server that answers, or None with the reason on stderr."""
        server = servers.ENGINES[key](model, shape, self.places, self.logs, isa)
        try:
            server.wait()
            client.run(self.places.plimsoll, client.Load(32, 4, 2, 99), server, self.tokenizer)
            server.freeze()
            return server
        except (servers.NotStarted, client.Failed) as reason:
            say(f"{key} leaves out {model.name}: {reason}")
            server.stop()
            return None

    def seed(self, part, number):
        return 1000 * (1 + parts.PARTS.index(part)) + number

    def taken(self, part, server, number):
        """The figures of one engine's turn, and how many cores others used meanwhile."""
        turn = parts.Turn(self.places.plimsoll, server, self.tokenizer, self.seed(part, number), self.arguments.quick)
        began, all_before, own_before = time.monotonic(), machine.busy_s(), machine.used_s(server.pid) + machine.children_s()
        figures = part.measure(turn)
        own = machine.used_s(server.pid) + machine.children_s() - own_before
        return figures, max(0.0, machine.busy_s() - all_before - own) / (time.monotonic() - began)

    def keep(self, part, model, key, number, isa, now, taken):
        figures, others = taken
        self.results["rows"].append({
            "part": part.name, "model": model.name, "engine": key, "round": number, "isa": isa,
            "at": time.strftime("%Y-%m-%d %H:%M", time.gmtime()), "figures": figures, "limits": now, "others_cores": round(others, 2)})
        self.save()
        say(f"round {number + 1}, {part.name}, {model.name}{f' ({isa})' if isa else ''}, {key}:",
            ", ".join(f"{name} {value:,.2f}" for name, value in figures.items()), f"(others: {others:.2f} cores)")

    def save(self):
        """After every turn, so that a run that is cut short leaves what it measured."""
        part = self.arguments.out.with_suffix(".part")
        part.write_text(json.dumps(dict(self.results, rows=self.earlier + self.results["rows"]), indent=1) + "\n")
        part.rename(self.arguments.out)

    def group(self, chosen, model, shape, isa):
        """Parts that share their servers: all run, all but one stopped."""
        wanted = [key for key in self.arguments.peers if any(key in part.engines for part in chosen)]
        running = {key: server for key in wanted if (server := self.begun(key, model, shape, isa))}
        try:
            for number in range(self.arguments.rounds):
                for part in chosen:
                    for key in [key for key in running if key in part.engines]:
                        if not self.turn(part, model, key, running[key], number, isa):
                            running.pop(key).stop()
        finally:
            for server in running.values():
                server.stop()

    def turn(self, part, model, key, server, number, isa):
        """Whether the server goes on: one that failed once is left out of the rest. Others that keep a core busy are waited for."""
        now = self.limits.measure(self.arguments.patience)
        server.thaw()
        try:
            client.run(self.places.plimsoll, client.Load(16, 8, 1, self.seed(part, number) + 500), server, self.tokenizer)
            self.keep(part, model, key, number, isa, now, self.taken(part, server, number))
            server.freeze()
            return True
        except (client.Failed, OSError) as reason:
            say(f"{part.name}, {model.name}, {key}: {reason}")
            return False

    def fresh(self, part, model):
        """A server of its own for each turn. The first start of each engine is not measured: it fills caches."""
        wanted = [key for key in self.arguments.peers if key in part.engines]
        for number in range(-1, self.arguments.rounds):
            for key in list(wanted):
                now = self.limits.measure(self.arguments.patience)
                server = servers.ENGINES[key](model, part.shape, self.places, self.logs)
                try:
                    if part.measure is not parts.start:
                        server.wait(0.005)
                    if number >= 0:
                        self.keep(part, model, key, number, None, now, self.taken(part, server, number))
                    else:
                        server.first_token_s()
                except (servers.NotStarted, client.Failed, OSError) as reason:
                    say(f"{part.name}, {model.name}, {key}: {reason}")
                    wanted.remove(key)
                finally:
                    server.stop()

    def all(self, chosen, names):
        narrower = machine.sets()[:-1]
        for name in names:
            mine = [part for part in chosen if name in part.models]
            if not mine:
                continue
            model = models.had(name, self.places, say)
            self.results["models"][name] = models.facts(model, self.places.plimsoll)
            steady = [part for part in mine if not part.fresh]
            for shape in dict.fromkeys(part.shape for part in steady):
                together = [part for part in steady if part.shape == shape]
                self.group(together, model, shape, None)
                for isa in [isa for isa in narrower if isa in self.arguments.sets]:
                    self.group([part for part in together if part.narrow], model, shape, isa)
            for part in mine:
                if part.fresh:
                    self.fresh(part, model)


def names(text, known):
    chosen = text.split(",")
    unknown = [name for name in chosen if name not in known]
    if unknown:
        raise SystemExit(f"unknown: {', '.join(unknown)}; known are {', '.join(known)}")
    return chosen


def arguments_of(given):
    parser = argparse.ArgumentParser(prog="run", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    known = [part.name for part in parts.PARTS]
    parser.add_argument("--only", default="", help=f"parts, by comma: {','.join(known)}")
    parser.add_argument("--models", default="", help=f"models, by comma: {','.join(models.MODELS)}")
    parser.add_argument("--peers", default="", help=f"engines, by comma: {','.join(servers.ENGINES)}")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--quick", action="store_true", help="one round, shorter loads: shows that all of it works")
    parser.add_argument("--patience", type=float, default=20, help="seconds to wait before each turn for others to leave the cores alone")
    parser.add_argument("--sets", default="avx2,avx512_vnni", help="instruction sets to restrict kernels to, where the machine has wider ones")
    parser.add_argument("--out", type=Path, help="the results as JSON (build/peers_results.json); its rows that are not measured again "
                        "stay when the same script measured the same program on the same machine")
    parser.add_argument("--table", action="store_true", help="measure nothing: write the page from the results in --out")
    parser.add_argument("--page", type=Path, help="the page that takes the table")
    parser.add_argument("--plimsoll", type=Path, default=ROOT / "build/release/plimsoll")
    parser.add_argument("--serve-flag", action="append", default=[], metavar="FLAG", help="one more flag for `plimsoll serve`: --serve-flag=X")
    parser.add_argument("--peers-dir", type=Path, default=ROOT / "build/peer_engines")
    parser.add_argument("--models-dir", type=Path, default=ROOT / "build/peer_models")
    found = parser.parse_args(given)
    found.is_whole = not (found.only or found.models or found.peers or found.quick)
    found.only = names(found.only, known) if found.only else known
    found.models = names(found.models, models.MODELS) if found.models else list(models.MODELS)
    found.peers = names(found.peers, servers.ENGINES) if found.peers else list(servers.ENGINES)
    found.sets = names(found.sets, machine.SETS) if found.sets else []
    found.rounds = 1 if found.quick else found.rounds
    found.out = found.out or ROOT / "build/peers_results.json"
    if found.is_whole or found.table:
        found.page = found.page or ROOT / "docs/performance.md"
    return found


def read(path):
    """Earlier results of the same measuring script; none when another one made them."""
    if not path.exists():
        return None
    found = json.loads(path.read_text())
    return found if found.get("measured_by") == table.digest(False) else None


def begin_results(arguments, places, peers):
    """What is known before the first turn, and the earlier rows that stay beside what is measured now."""
    results = {"schema": "plimsoll.peers/1", "measured_by": table.digest(False), "machine": machine.description(servers.THREADS),
               "peers": peers, "plimsoll": machine.program(places.plimsoll), "models": {}, "rows": []}
    earlier = None if arguments.is_whole else read(arguments.out)
    if not earlier or any(earlier[key] != results[key] for key in ("machine", "plimsoll")):
        return results, []
    results["models"] = earlier["models"]
    again = {(part, model) for part in arguments.only for model in arguments.models}
    return results, [row for row in earlier["rows"] if (row["part"], row["model"]) not in again]


def main():
    arguments = arguments_of(sys.argv[1:])
    install.registries.stop_cleanly_on_sigterm()
    if arguments.table:
        results = read(arguments.out)
        if not results or not results["rows"]:
            raise SystemExit(f"{arguments.out} holds nothing that this script measured; run it without --table")
        table.write(results, arguments.page)
        return 0
    sets = machine.sets()
    if not sets:
        raise SystemExit("this machine lacks AVX2: neither llama.cpp nor the kernels' fast forms run here")
    places = Places(arguments.plimsoll.resolve(), arguments.peers_dir.resolve(), arguments.models_dir.resolve(),
                    arguments.peers_dir.resolve() / "packed", tuple(arguments.serve_flag), sets[-1])
    wanted = [name for name in sets if name == sets[-1] or name in arguments.sets]
    peers = install.all_of(places.peers, arguments.peers, wanted, say)
    results, earlier = begin_results(arguments, places, peers)
    run = Run(arguments, places, results, earlier)
    try:
        run.all([part for part in parts.PARTS if part.name in arguments.only], arguments.models)
    finally:
        if results["rows"]:
            print(table.text(results, everything=False))
    if arguments.page and results["rows"]:
        table.write(dict(results, rows=earlier + results["rows"]), arguments.page)
    return 0 if results["rows"] else 1
