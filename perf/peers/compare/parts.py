# SPDX-License-Identifier: Apache-2.0
"""What is measured: each part is a load and the figures taken from it, the same for every engine.

A part's `measure(turn)` gives {figure: value}. Prompts are distinct: rounds have seeds of their own, engines share those of a round.
"""
import dataclasses
import statistics
import subprocess
import sys
import time
from collections.abc import Callable

import client
from client import Load

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
        return client.run(self.program, Load(seed=self.seed, **shape), self.server, self.tokenizer)


@dataclasses.dataclass(frozen=True)
class Part:
    name: str
    shape: tuple
    measure: Callable
    models: tuple
    engines: tuple = ("plimsoll", "llama", "openvino")


def decode(turn):
    answers = turn.load(prompt=16, output=64 if turn.quick else 96, requests=2 if turn.quick else 3)
    return {"decode_tok_s": 1 / statistics.median(answers.tpot_s)}


def prefill(turn):
    """Prompt tokens over the time to the first token, tokenizing and HTTP inside."""
    found = {}
    for tokens, requests in ((512, 3), (2048, 2)):
        answers = turn.load(prompt=tokens, output=1, requests=1 if turn.quick else requests)
        found[f"prefill_{tokens}_tok_s"] = tokens / statistics.median(answers.ttft_s)
    return found


def totals(turn):
    """Output tokens over the time from the first request to the last token; each number of streams starts and ends at once."""
    found = {}
    for streams in (8, 16, 32):
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
    """How many times as long a step takes while another process keeps one core busy."""
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


SMALL = ("smollm2-q4_0", "smollm2-q8_0", "smollm2-bf16")
PARTS = [
    Part("decode", ONE, decode, SMALL),
    Part("prefill", ONE, prefill, SMALL),
    Part("prefix", ONE, prefix, SMALL),
    Part("context", ONE, context, SMALL),
    Part("neighbour", ONE, neighbour, SMALL[:1]),
    Part("totals", MANY, totals, SMALL[:2]),
    Part("cached", MANY, cached, SMALL[:2]),
]
