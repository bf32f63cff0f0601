# SPDX-License-Identifier: Apache-2.0
"""One load from `plimsoll bench`, the same client for every engine, and the figures that are taken from its log."""
import dataclasses
import json
import subprocess
import tempfile
from pathlib import Path


LIMIT_S = 300  # for a request: a server that hangs must not hold up the run


class Failed(Exception):
    """A request failed or was not of the size that was asked for: there is no figure."""


@dataclasses.dataclass(frozen=True)
class Load:
    """`requests` prompts of `prompt` tokens, no two alike, `output` tokens each, `streams` at a time. With `prefix` all begin with
    the same so many tokens. Equal seeds give equal prompts."""
    prompt: int
    output: int
    requests: int
    seed: int
    streams: int = 1
    prefix: int = 0


@dataclasses.dataclass
class Answers:
    """Per request, in the order sent: seconds. `span_s`: first request sent to last token; `tokens`: all output tokens."""
    ttft_s: list
    tpot_s: list
    span_s: float
    tokens: int


def words(load, server, tokenizer):
    if load.prefix:
        shape = ["--dataset-name", "prefix_repetition", "--prefix-repetition-num-prefixes", "1", "--prefix-repetition-prefix-len",
                 str(load.prefix), "--prefix-repetition-suffix-len", str(load.prompt), "--prefix-repetition-output-len", str(load.output)]
    else:
        shape = ["--dataset-name", "random", "--random-input-len", str(load.prompt), "--random-output-len", str(load.output)]
    return ["bench", "-q", "--base-url", server.url, "--model", "m", "--tokenizer", str(tokenizer), "--num-prompts", str(load.requests),
            "--max-concurrency", str(load.streams), "--seed", str(load.seed), "--ignore-eos", "--temperature", "0",
            "--request-timeout", str(LIMIT_S), "--server-metrics", "off", *shape]


def run(program, load, server, tokenizer):
    """Errors: Failed when a request failed, or had other numbers of tokens than asked for."""
    with tempfile.TemporaryDirectory() as scratch:
        log = Path(scratch) / "requests.jsonl"
        result = Path(scratch) / "result.json"
        done = subprocess.run([str(program), *words(load, server, tokenizer), "--request-log", str(log), "--save-result", "--result-dir",
                               scratch, "--result-filename", result.name], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if done.returncode != 0 or not log.exists():
            raise Failed(f"bench ended with {done.returncode}: {done.stdout[-600:]}")
        rows = [json.loads(line) for line in log.read_text().splitlines()]
        summary = json.loads(result.read_text())
    failed = [row["error"] or row["status"] for row in rows if row["error"] or row["output_tokens"] != load.output]
    if failed:
        raise Failed(f"{len(failed)} of {len(rows)} requests failed or were cut short; the first: {failed[0]}")
    expected = load.requests * (load.prompt + load.prefix)
    if abs(summary["total_input_tokens"] - expected) > load.requests:  # a BOS more or less
        raise Failed(f"the server counted {summary['total_input_tokens']} prompt tokens instead of {expected}")
    return Answers(
        [row["first_token_s"] - row["sent_s"] for row in rows],
        [(row["last_token_s"] - row["first_token_s"]) / (row["output_tokens"] - 1) for row in rows if row["output_tokens"] > 1],
        max(row["last_token_s"] for row in rows) - min(row["sent_s"] for row in rows), sum(row["output_tokens"] for row in rows))
