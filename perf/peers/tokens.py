#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures tokenizers side by side: HF tokenizers, tiktoken, gigatoken and plimsoll, in one run on the same corpora.

usage: perf/peers/tokens.py TOKENIZERS CORPORA [--families qwen3 llama3] [--repeats 7] [--warm 3] [--core 0]

TOKENIZERS is the folder that tools/fetch_tokenizers prints, CORPORA the one that perf/peers/corpus.py fills. Every
figure comes from a process of its own, one thread on one core, and the peers take turns: load, one cold pass (the
first the process ever makes), warm passes over the same documents, decoding. Times are CPU time. What a peer does to
turn its result into Python objects is left out where its interface allows. All ids of all peers must be the same.
"""
import argparse
import gc
import hashlib
import importlib.metadata
import json
import os
import statistics
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PEERS = ("hf", "tiktoken", "gigatoken", "plimsoll")
FIGURES = ("load_ms", "cold_mb_s", "warm_mb_s", "decode_mb_s")


# ---- one peer in its own process

class HuggingFace:
    def __init__(self, folder: Path):
        import tokenizers
        self.make = lambda: tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))

    def load(self) -> None:
        self.tokenizer = self.make()

    def encode(self, documents: list[str]) -> list:
        return self.tokenizer.encode_batch_fast(documents, add_special_tokens=False)

    def ids(self, encoded: list) -> list[list[int]]:
        return [encoding.ids for encoding in encoded]

    def decode(self, ids: list[list[int]]) -> list[str]:
        return self.tokenizer.decode_batch(ids, skip_special_tokens=False)


def split_pattern(pre_tokenizer: dict) -> str:
    """The one expression of a tokenizer.json that cuts by one; tiktoken knows no other kind."""
    steps = pre_tokenizer.get("pretokenizers", [pre_tokenizer])
    patterns = [step["pattern"]["Regex"] for step in steps if step["type"] == "Split"]
    if len(patterns) != 1:
        raise SystemExit("this tokenizer does not cut by one expression, as tiktoken has to")
    return patterns[0]


def bytes_of_characters() -> dict[str, int]:
    """The byte that each character of a byte-level vocabulary stands for."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in plain]
    return {**{chr(byte): byte for byte in plain}, **{chr(256 + i): byte for i, byte in enumerate(others)}}


class Tiktoken:
    """Ranks are the ids of tokenizer.json; making them out of it is not counted as loading."""

    def __init__(self, folder: Path):
        import tiktoken
        tree = json.loads((folder / "tokenizer.json").read_text())
        table = bytes_of_characters()
        ranks = {bytes(table[character] for character in token): rank for token, rank in tree["model"]["vocab"].items()
                 if all(character in table for character in token)}
        pattern = split_pattern(tree["pre_tokenizer"])
        self.make = lambda: tiktoken.Encoding("own", pat_str=pattern, mergeable_ranks=ranks, special_tokens={})

    def load(self) -> None:
        self.encoding = self.make()

    def encode(self, documents: list[str]) -> list[list[int]]:
        encode = self.encoding.encode_ordinary
        return [encode(document) for document in documents]

    def ids(self, encoded: list[list[int]]) -> list[list[int]]:
        return encoded

    def decode(self, ids: list[list[int]]) -> list[str]:
        decode = self.encoding.decode
        return [decode(one) for one in ids]


class Gigatoken:
    def __init__(self, folder: Path):
        import gigatoken
        self.make = lambda: gigatoken.Tokenizer(str(folder / "tokenizer.json"))

    def load(self) -> None:
        self.tokenizer = self.make()

    def encode(self, documents: list[str]):
        return self.tokenizer.encode_batch(documents, parallel=False)

    def ids(self, encoded) -> list[list[int]]:
        return encoded.to_list()

    def decode(self, ids: list[list[int]]) -> list[bytes]:
        import numpy
        decode = self.tokenizer.decode
        return [decode(numpy.asarray(one, dtype=numpy.uint32)) for one in ids]


def timed(action: Callable):
    start = time.process_time()
    result = action()
    return time.process_time() - start, result


def measure(kind: str, folder: Path, corpus: Path, passes: int) -> None:
    """Prints the lines that perf/tokens_perf.cpp prints."""
    peer = {"hf": HuggingFace, "tiktoken": Tiktoken, "gigatoken": Gigatoken}[kind](folder)
    documents = corpus.read_bytes().decode().split("\0")
    megabytes = sum(len(document.encode()) for document in documents) / 1e6
    gc.disable()
    seconds, _ = timed(peer.load)
    print(f"load_ms {seconds * 1e3:.1f}")
    seconds, encoded = timed(lambda: peer.encode(documents))
    print(f"cold_mb_s {megabytes / seconds:.2f}")
    warm = [timed(lambda: peer.encode(documents))[0] for _ in range(passes)]
    print(f"warm_mb_s {megabytes / statistics.median(warm):.2f}")
    ids = peer.ids(encoded)
    decode = [timed(lambda: peer.decode(ids))[0] for _ in range(passes)]
    print(f"decode_mb_s {megabytes / statistics.median(decode):.2f}")
    digest = hashlib.sha256()
    for one in ids:
        digest.update(b"".join(token.to_bytes(4, "little") for token in one))
    print(f"ids {sum(map(len, ids))}\nids_sha256 {digest.hexdigest()}")


# ---- all of them, by turns

def run(peer: str, program: Path, folder: Path, corpus: Path, passes: int) -> dict[str, str]:
    environment = {**os.environ, "TOKENIZERS_PARALLELISM": "false", "RAYON_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    command = ([program, folder, corpus, str(passes)] if peer == "plimsoll" else
               [sys.executable, __file__, "--one", peer, folder, corpus, "--warm", str(passes)])
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    if done.returncode != 0:
        reason = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
        return {"failed": reason}
    return dict(line.split(" ", 1) for line in done.stdout.splitlines())


def table(figures: dict[str, dict[str, list[float]]]) -> None:
    print(f"  {'':10}" + "".join(f"{name + ' min/median/max':>34}" for name in FIGURES))
    for peer, values in figures.items():
        cells = (f"{min(values[name]):.1f} / {statistics.median(values[name]):.1f} / {max(values[name]):.1f}"
                 for name in FIGURES)
        print(f"  {peer:10}" + "".join(f"{cell:>34}" for cell in cells))


def ratios(figures: dict[str, dict[str, list[float]]]) -> None:
    def ratio(name: str, peer: str) -> str:
        if peer not in figures or "plimsoll" not in figures:
            return "-"
        return f"{statistics.median(figures['plimsoll'][name]) / statistics.median(figures[peer][name]):.2f}"

    print(f"  plimsoll: cold {ratio('cold_mb_s', 'hf')} x HF, {ratio('cold_mb_s', 'tiktoken')} x tiktoken; "
          f"warm {ratio('warm_mb_s', 'gigatoken')} x gigatoken; load time {ratio('load_ms', 'hf')} of HF's")


def circumstances() -> str:
    cpu = next((line.partition(":")[2].strip() for line in Path("/proc/cpuinfo").read_text().splitlines()
                if line.startswith("model name")), "unknown CPU")
    peers = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in ("tokenizers", "tiktoken", "gigatoken"))
    return f"{cpu}, one thread on one core, load average {os.getloadavg()[0]:.1f}; {peers}"


def compare(family: str, corpus: Path, arguments: argparse.Namespace) -> bool:
    """One table; false when a peer failed or gave other ids."""
    figures: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    ids: dict[str, str] = {}
    failed: dict[str, str] = {}
    for _ in range(arguments.repeats):
        for peer in PEERS:
            if peer in failed:
                continue
            result = run(peer, arguments.program, arguments.tokenizers / family, corpus, arguments.warm)
            if "failed" in result:
                failed[peer] = result["failed"]
                continue
            for name in FIGURES:
                figures[peer][name].append(float(result[name]))
            ids[peer] = f"{result['ids']} ids, sha256 {result['ids_sha256'][:16]}"
    print(f"\n{family} on {corpus.name} ({corpus.stat().st_size / 1e6:.2f} MB), {arguments.repeats} processes each")
    table(figures)
    ratios(figures)
    for peer, reason in failed.items():
        print(f"  {peer} failed: {reason}")
    equal = len(set(ids.values())) == 1
    print("  ids: all the same, " + next(iter(ids.values())) if equal else f"  ids DIFFER: {ids}")
    return equal and not failed


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--one", choices=PEERS[:3], help=argparse.SUPPRESS)
    parser.add_argument("tokenizers", type=Path)
    parser.add_argument("corpora", type=Path)
    parser.add_argument("--families", nargs="+", default=["qwen3", "llama3"])
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--warm", type=int, default=3)
    parser.add_argument("--core", type=int, default=0)
    parser.add_argument("--program", type=Path, default=ROOT / "build/release/perf/plimsoll_tokens_perf")
    arguments = parser.parse_args()
    if arguments.one:
        measure(arguments.one, arguments.tokenizers, arguments.corpora, arguments.warm)
        return 0
    os.sched_setaffinity(0, {arguments.core})
    print(circumstances())
    equal = [compare(family, arguments.corpora / f"{name}.txt", arguments) for family in arguments.families
             for name in ("english", "mixed")]
    return 0 if all(equal) else 1


if __name__ == "__main__":
    sys.exit(main())
