# SPDX-License-Identifier: Apache-2.0
"""Static beside continuous batching: the same 64 requests of mixed lengths, sent at the same times, through `plimsoll bench`.

usage: batching.py PROGRAM MODEL [--rounds 3] [--rate 2]

The modes take turns. Prints least, median and most of the rounds as a table; queue lengths are those of /metrics, read
ten times a second while the load runs."""
import argparse
import json
import statistics
import subprocess
import tempfile
import threading

from own_server import OwnServer

FIGURES = {  # key of the result: title
    "mean_ttft_ms": "TTFT mean, ms", "p99_ttft_ms": "TTFT p99, ms", "mean_tpot_ms": "TPOT mean, ms", "mean_e2el_ms": "E2EL mean, ms",
    "p99_e2el_ms": "E2EL p99, ms", "output_throughput": "output tokens/s", "duration": "duration, s",
    "running_mean": "running, mean", "waiting_mean": "waiting, mean", "waiting_most": "waiting, most",
}


def watched(server, finished, seen):
    while not finished.wait(0.1):
        now = server.metrics()
        seen.append((now["vllm:num_requests_running"], now["vllm:num_requests_waiting"]))


def run_once(arguments, mode):
    with OwnServer(arguments.program, arguments.model, "--batching", mode, "--max-num-seqs", "8", "--max-model-len", "1024",
                   "--no-enable-prefix-caching") as server, tempfile.TemporaryDirectory() as folder:
        finished, seen = threading.Event(), []
        watcher = threading.Thread(target=watched, args=(server, finished, seen))
        watcher.start()
        subprocess.run([arguments.program, "bench", "--base-url", server.url, "--tokenizer", arguments.model, "--num-prompts", "64",
                        "--random-input-len", "128", "--random-output-len", "64", "--random-range-ratio", "0.9", "--ignore-eos",
                        "--request-rate", str(arguments.rate), "--percentile-metrics", "ttft,tpot,itl,e2el", "--save-result",
                        "--result-dir", folder, "--result-filename", "result.json", "-q"], check=True, stdout=subprocess.DEVNULL)
        finished.set()
        watcher.join()
        with open(f"{folder}/result.json", encoding="utf-8") as file:
            result = json.load(file)
    if result["completed"] != 64:
        raise SystemExit(f"only {result['completed']} of 64 requests succeeded")
    busy = [pair for pair in seen if sum(pair) > 0]
    result["running_mean"] = statistics.fmean(running for running, _ in busy)
    result["waiting_mean"] = statistics.fmean(waiting for _, waiting in busy)
    result["waiting_most"] = max(waiting for _, waiting in busy)
    return {key: result[key] for key in FIGURES}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("model")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--rate", type=float, default=2.0)
    arguments = parser.parse_args()
    runs = {"static": [], "continuous": []}
    for _ in range(arguments.rounds):
        for mode, results in runs.items():
            results.append(run_once(arguments, mode))
    print("| figure | static | continuous | static / continuous |\n|---|---|---|---|")
    for key, title in FIGURES.items():
        cells, ratios = [], [a[key] / b[key] for a, b in zip(*runs.values(), strict=True) if b[key]]
        for results in runs.values():
            values = sorted(result[key] for result in results)
            cells.append(f"{statistics.median(values):,.1f} ({values[0]:,.1f} to {values[-1]:,.1f})")
        ratio = f"{statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})" if ratios else "-"
        print(f"| {title} | {' | '.join(cells)} | {ratio} |")


if __name__ == "__main__":
    main()
