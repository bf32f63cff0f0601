# SPDX-License-Identifier: Apache-2.0
"""`bench` with several runs: sweeps, searches, comparisons, the page. The endpoint answers at once, but only SLOTS
requests at a time and each for HOLD_S, so that goals on latency are met up to that concurrency and no further."""
import json
import threading
import time
import xml.etree.ElementTree as ElementTree
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

SLOTS = 4
HOLD_S = 0.1


class Endpoint(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    slots = threading.Semaphore(SLOTS)
    prompts: list[str] = []

    def log_message(self, *_):
        pass

    def answer(self, kind: str, body: bytes):
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        if self.path != "/v1/models":
            self.send_error(404)
            return
        self.answer("application/json", b'{"data":[{"id":"org/<b>toy"}]}')

    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.prompts.append(request["prompt"])
        with self.slots:
            time.sleep(HOLD_S)  # the endpoint's own pace, nothing is inferred from it being exact
        events = [{"choices": [{"index": 0, "text": " a"}]}] * 2
        events.append({"choices": [], "usage": {"prompt_tokens": 5, "completion_tokens": 2}})
        body = "".join(f"data: {json.dumps(event)}\n\n" for event in events) + "data: [DONE]\n\n"
        self.answer("text/event-stream", body.encode())


@pytest.fixture()
def endpoint():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Endpoint)
    server.daemon_threads = True
    Endpoint.prompts.clear()
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()


LOAD = ["--random-input-len", "8", "--random-output-len", "2", "-q"]


def test_a_sweep_ends_with_its_table_and_draws_its_page(run, endpoint, tmp_path):
    page = tmp_path / "page.html"
    done = run("bench", "--base-url", endpoint, "--sweep", "concurrency=1..4", "--num-prompts", "8", "--html", str(page),
               *LOAD)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("Serving Benchmark Result") == 3
    table = done.stdout[done.stdout.index("concurrency    req/s"):].splitlines()
    assert [line.split()[0] for line in table[1:4]] == ["1", "2", "4"]
    # No prompt is sent twice: a prefix cache would know it.
    assert len(set(Endpoint.prompts)) == len(Endpoint.prompts) == 24
    root = ElementTree.fromstring(page.read_text().removeprefix("<!DOCTYPE html>"))
    text = page.read_text()
    assert "Throughput against latency" in text and "org/&lt;b&gt;toy" in text
    assert not root.findall(".//script") and "https://" not in text
    drawings = root.findall(".//{http://www.w3.org/2000/svg}svg")
    assert len(drawings) == 4 + 4 + 3 * 3


def test_a_sweep_of_rates_is_one_document(run, endpoint):
    done = run("bench", "--base-url", endpoint, "--sweep", "rate=20,30", "--num-prompts", "6", "--format", "json", *LOAD)
    assert done.returncode == 0, done.stderr
    assert [step["request_rate"] for step in json.loads(done.stdout)["sweep"]] == [20, 30]


def test_a_search_finds_the_slots_and_its_neighbour(run, endpoint):
    # With SLOTS + 1 at a time the last waits for a whole turn: 200 ms; the limit lies far from both.
    done = run("bench", "--base-url", endpoint, "--search", "concurrency=1..64", "--goodput", "e2el:165", "--num-prompts",
               "20", "--goodput-share", "0.9", "--search-tolerance", "0.001", "--format", "json", *LOAD)
    assert done.returncode == 0, done.stderr
    search = json.loads(done.stdout)["search"]
    assert search["parameter"] == "concurrency"
    assert search["best"] is not None and search["first_miss"] == search["best"] + 1
    assert search["best"] <= SLOTS
    assert len(search["steps"]) >= 3


def test_a_search_without_an_answer_is_a_no(run, endpoint):
    done = run("bench", "--base-url", endpoint, "--search", "concurrency=1..4", "--goodput", "e2el:1", "--num-prompts", "4",
               *LOAD)
    assert done.returncode == 1
    assert "No concurrency from 1 on has 99 % good requests: 1 missed." in done.stdout


@pytest.mark.parametrize("share, status", [([], 0), (["--goodput-share", "0.5"], 1)])
def test_a_missed_share_is_a_no_when_it_was_asked_for(run, endpoint, share, status):
    done = run("bench", "--base-url", endpoint, "--num-prompts", "2", "--goodput", "e2el:1", *share, *LOAD)
    assert done.returncode == status, done.stderr


def test_a_sweep_that_ends_early_keeps_its_steps(run, endpoint, tmp_path):
    # The second step's file cannot be written: there is a folder of its name.
    (tmp_path / "r.2").mkdir()
    flags = ["--sweep", "concurrency=1,2,4", "--num-prompts", "2", "--request-log", str(tmp_path / "r"), *LOAD]
    done = run("bench", "--base-url", endpoint, *flags)
    assert done.returncode == 2 and "r.2" in done.stderr
    assert done.stdout.count("Serving Benchmark Result") == 2 and "concurrency    req/s" in done.stdout
    done = run("bench", "--base-url", endpoint, *flags, "--format", "json")
    assert len(json.loads(done.stdout)["sweep"]) == 2


def test_results_are_labelled_appended_and_compared(run, endpoint, tmp_path):
    for name, prompts in (("a.json", "6"), ("b.json", "6"), ("b.json", "8")):
        done = run("bench", "--base-url", endpoint, "--num-prompts", prompts, "--append-result", "--save-detailed", "--label",
                   "mine", "--metadata", "tp=2", "gpu=none", "--result-filename", name, "--result-dir", str(tmp_path), *LOAD)
        assert done.returncode == 0, done.stderr
    lines = (tmp_path / "b.json").read_text().splitlines()
    assert [json.loads(line)["num_prompts"] for line in lines] == [6, 8]
    assert json.loads(lines[0])["label"] == "mine" and json.loads(lines[0])["tp"] == "2"
    files = [str(tmp_path / "a.json"), str(tmp_path / "b.json")]
    compared = json.loads(run("bench", "--compare", *files, "--format", "json").stdout)
    assert compared["schema"] == "plimsoll.bench_compare/1" and compared["b"]["num_prompts"] == 8
    mean = next(row for row in compared["differences"] if (row["metric"], row["statistic"]) == ("ttft", "mean"))
    assert len(mean["difference_interval_95"]) == 2 and mean["beyond_noise"] in (True, False)
    text = run("bench", "--compare", *files)
    assert text.returncode == 0 and "num_prompts differs: 6 and 8" in text.stdout
    assert run("bench", "--compare", files[0], str(tmp_path / "none.json")).returncode == 3


@pytest.mark.parametrize("flags, named", [
    (["--sweep", "concurrency=4..1"], "--sweep"),
    (["--search", "rate=1..2"], "--goodput"),
    (["--search", "rate=1..2", "--sweep", "rate=1", "--goodput", "ttft:1"], "--sweep, --search"),
    (["--metadata", "tp"], "--metadata"),
    (["--selftest", "--html", "x", "--num-prompts", "3"], "--num-prompts"),
    (["--fail-if", "p99_e2el_ms>1"], "--fail-if"),
    (["--goodput-share", "0.5"], "--goodput"),
    (["--sweep", "rate=1,2", "--ramp-up-strategy", "linear", "--ramp-up-start-rps", "1", "--ramp-up-end-rps", "2"],
     "--ramp-up-strategy"),
    (["--search", "rate=1", "--goodput", "ttft:1", "--goodput-share", "1.5"], "--goodput-share"),
])
def test_odd_flags_are_refused_before_anything_is_sent(run, flags, named):
    done = run("bench", "--base-url", "http://127.0.0.1:9", *flags)
    assert done.returncode == 2 and named in done.stderr
