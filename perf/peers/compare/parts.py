# SPDX-License-Identifier: Apache-2.0
"""What is measured: each part is a load and the figures taken from it, the same for every engine.

A part's `measure(turn)` gives {figure: value}. Prompts are distinct: rounds have seeds of their own, engines share those of a round.
"""
import dataclasses
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import client
from client import Load

ROOT = Path(__file__).resolve().parents[3]
ONE = (1, 4608)    # one sequence of up to so many tokens
MANY = (32, 256)


@dataclasses.dataclass(frozen=True)
class Turn:
    """One engine's turn in one round of one part."""
    program: object    # plimsoll, whose `bench` is the client
    server: object
    tokenizer: object
    seed: int
    quick: bool

    def load(self, **shape):
        """Loads of other sizes have other prompts, since equal seeds begin alike; the same size again has the same prompts."""
        seed = (self.seed * 10_000 + shape["prompt"]) * 100 + shape["requests"]
        return client.run(self.program, Load(seed=seed, **shape), self.server, self.tokenizer)


@dataclasses.dataclass(frozen=True)
class Part:
    """`fresh`: each turn has a server of its own, just started and not warmed up. `narrow`: measured again for restricted
    instruction sets."""
    name: str
    shape: tuple
    measure: Callable
    models: tuple
    engines: tuple = ("plimsoll", "llama", "openvino")
    fresh: bool = False
    narrow: bool = False


def decode(turn):
    answers = turn.load(prompt=16, output=64 if turn.quick else 96, requests=2 if turn.quick else 3)
    return {"decode_tok_s": 1 / statistics.median(answers.tpot_s)}


def prefill_of(turn, tokens, requests):
    """Prompt tokens over the time to the first token, tokenizing and HTTP inside."""
    answers = turn.load(prompt=tokens, output=1, requests=requests)
    return {f"prefill_{tokens}_tok_s": tokens / statistics.median(answers.ttft_s)}


def prefill(turn):
    return prefill_of(turn, 512, 1 if turn.quick else 3) | prefill_of(turn, 2048, 1)


def shapes(turn):
    """Larger models: decoding and a prompt of 512."""
    answers = turn.load(prompt=16, output=24, requests=2)
    return {"decode_tok_s": 1 / statistics.median(answers.tpot_s)} | prefill_of(turn, 512, 1)


def totals(turn):
    """Output tokens over the time from the first request to the last token; each number of streams starts and ends at once."""
    found = {}
    for streams in (32,) if turn.quick else (8, 16, 32):
        answers = turn.load(prompt=128, output=64, requests=streams, streams=streams)
        found[f"total_{streams}_tok_s"] = answers.tokens / answers.span_s
    return found


def cached(turn):
    """The same prompts twice: the second time they are in the cache, and what is left is decoding."""
    shape = {"prompt": 128, "requests": 32, "streams": 32}
    turn.load(output=1, **shape)
    answers = turn.load(output=64, **shape)
    return {"cached_32_tok_s": answers.tokens / answers.span_s}


def prefix(turn):
    """16 tokens behind the same 1,024; the first request computes the prefix and is left out."""
    answers = turn.load(prompt=16, prefix=1024, output=1, requests=4 if turn.quick else 8)
    return {"prefix_ttft_ms": statistics.median(answers.ttft_s[1:]) * 1e3}


def context(turn):
    answers = turn.load(prompt=4032, output=24, requests=1)
    return {"context_4k_ms": answers.tpot_s[0] * 1e3}


def neighbour(turn):
    """How many times as long a step takes while another process keeps one core busy, under the same nice value."""
    shape = {"prompt": 16, "output": 64, "requests": 2}
    alone = statistics.median(turn.load(**shape).tpot_s)
    busy = subprocess.Popen(["taskset", "-c", "0", sys.executable, "-c", "while True: pass"])
    try:
        time.sleep(0.2)
        beside = statistics.median(turn.load(**shape).tpot_s)
    finally:
        busy.kill()
        busy.wait()
    return {"neighbour_times": beside / alone}


def start(turn):
    """From the start of the process to the first token; what a first start leaves behind is there already."""
    return {"start_s": turn.server.first_token_s()}


def memory(turn):
    """A fresh server behind 32 sequences at once. KV in use: what it says a token takes, times the tokens of all sequences."""
    turn.load(prompt=128, output=64, requests=32, streams=32)
    seen = turn.server.memory()
    found = {f"{name}_mb": value / 1e6 for name, value in seen.items()}
    told = turn.server.told()
    if told:
        used = told["weights_bytes"] + 32 * (128 + 64) * told["kv_bytes_per_token"]
        found["over_mb"] = (seen["anonymous"] + seen["packed"] - used) / 1e6
    return found


def quality(turn):
    """How far `auto` is from float32 over English and tables: this repository's own pages."""
    pages = sorted((ROOT / "docs/formulas").glob("*.md"))
    with tempfile.TemporaryDirectory() as scratch:
        text = Path(scratch) / "text"
        text.write_text("\n".join(page.read_text() for page in pages))
        done = subprocess.run([str(turn.program), "eval", str(turn.server.model.file), "--kl", "--text-file", str(text), "--max-windows",
                               "2" if turn.quick else "6", "--format", "json", "-q"], stdout=subprocess.PIPE, check=True)
    row = json.loads(done.stdout)["text"]["rows"][-1]
    return {"same_top_percent": row["divergence"]["same_top"] * 100, "kl_mean_mnats": row["divergence"]["kl_mean"] * 1e3}


SMALL = ("smollm2-q4_0", "smollm2-q8_0", "smollm2-bf16")
LARGE = ("qwen3-0.6b-q4_k_m", "qwen3-0.6b-q8_0", "qwen3-0.6b-bf16", "moe-q8_0")
PARTS = [
    Part("decode", ONE, decode, ("smollm2-q4_0", "smollm2-q4_1", "smollm2-q8_0", "smollm2-bf16"), narrow=True),
    Part("prefill", ONE, prefill, SMALL, narrow=True),
    Part("prefix", ONE, prefix, SMALL),
    Part("context", ONE, context, SMALL),
    Part("neighbour", ONE, neighbour, SMALL[:1]),
    Part("totals", MANY, totals, SMALL[:2], narrow=True),
    Part("cached", MANY, cached, SMALL[:1]),
    Part("shapes", ONE, shapes, LARGE),
    Part("start", ONE, start, SMALL, fresh=True),
    Part("memory", MANY, memory, SMALL[:2], fresh=True),
    Part("quality", ONE, quality, SMALL[:2], engines=("plimsoll",), fresh=True),
]
