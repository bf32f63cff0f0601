# SPDX-License-Identifier: Apache-2.0
"""`bench` against servers that we write here: what it asks, what it makes of the answers."""
import json
import os
import signal
import socket
import ssl
import subprocess
import threading
import time

import hub_certificate
from timetable import TimetableServer, completion

SMALL = ["--random-input-len", "4", "--random-output-len", "4", "--format", "json"]


def bench(run, url, *flags, **options):
    seen = run("bench", "--base-url", url, *SMALL, *flags, **options)
    return seen, json.loads(seen.stdout)


def test_tls_is_verified_and_timed_like_any_other(run, tmp_path):
    authority, certificate = hub_certificate.make(tmp_path)
    with TimetableServer([completion(4)], tls=certificate) as server:
        trusting = {**os.environ, "SSL_CERT_FILE": authority}
        seen, result = bench(run, server.url, "--num-prompts", "6", "--max-concurrency", "2", env=trusting)
        assert seen.returncode == 0, seen.stderr
        assert (result["completed"], result["total_output_tokens"]) == (6, 24)
        assert result["plimsoll"]["ttft_ms"]["count"] == 6
        assert len(server.peers) == 2  # kept and used again
        seen, result = bench(run, server.url, "--model", "m", "--num-prompts", "2", env={"PATH": os.environ["PATH"]})
        assert seen.returncode == 5 and "certificate" in result["error"]["message"]


def test_several_endpoints_share_the_load(run):
    with TimetableServer([completion(2)]) as one, TimetableServer([completion(3)]) as two:
        seen, result = bench(run, one.url, "--base-url", two.url, "--num-prompts", "8", "--max-concurrency", "4")
        assert seen.returncode == 0, seen.stderr
        ends = result["plimsoll"]["endpoints"]
        assert [end["url"] for end in ends] == [one.url, two.url]
        assert [end["completed"] for end in ends] == [4, 4] == [len(one.asked), len(two.asked)]
        assert [end["output_tokens"] for end in ends] == [8, 12]


def test_an_endpoint_that_is_gone_costs_its_share(run):
    with TimetableServer([completion(2)]) as one:
        seen, result = bench(run, one.url, "--base-url", "http://127.0.0.1:1", "--num-prompts", "6")
        assert seen.returncode == 0
        assert (result["completed"], result["failed"]) == (3, 3)
        assert result["plimsoll"]["errors"][0]["kind"] == "connect"


def test_keep_alive_can_be_left(run):
    with TimetableServer([completion(1)]) as server:
        bench(run, server.url, "--model", "m", "--num-prompts", "5", "--max-concurrency", "1", "--no-keep-alive")
        assert len(server.peers) == 5


def test_selftest_prints_one_document(run):
    seen = run("bench", "--selftest", "--sweep", "concurrency=16,20", "--format", "json")
    assert seen.returncode == 0, seen.stderr
    document = json.loads(seen.stdout)
    assert document["schema"] == "plimsoll.bench_selftest/1"
    assert [row["streams"] for row in document["rows"]] == [16, 20]
    assert all(row["completed"] == row["requests"] for row in document["rows"])


def test_what_is_asked_beside_the_prompt(run):
    with TimetableServer([completion(2)]) as server:
        port = str(server.server_address[1])
        seen = run("bench", "--host", "127.0.0.1", "--port", port, *SMALL, "--num-prompts", "2", "--model", "org/m",
                   "--served-model-name", "short", "--temperature", "0", "--top-k", "3",
                   "--extra-body", '{"top_k": 5, "stop": ["x"]}', "--request-id-prefix", "run-")
        assert seen.returncode == 0, seen.stderr
        assert json.loads(seen.stdout)["model_id"] == "org/m"
        for asked in server.asked:
            assert (asked["model"], asked["temperature"], asked["top_k"], asked["stop"]) == ("short", 0, 5, ["x"])
        assert sorted(server.ids) == ["run-0", "run-1"]
    refused = run("bench", "--extra-body", "[1]")
    assert refused.returncode == 2 and "--extra-body" in refused.stderr


def test_waiting_for_a_server_has_an_end(run):
    seen, result = bench(run, "http://127.0.0.1:1", "--ready-check-timeout-sec", "0.3")
    assert seen.returncode == 5 and "ready" in result["error"]["message"]


def test_a_certificate_that_nobody_knows_can_be_taken(run, tmp_path):
    _, certificate = hub_certificate.make(tmp_path)
    with TimetableServer([completion(2)], tls=certificate) as server:
        seen, result = bench(run, server.url, "--num-prompts", "2", "--insecure")
        assert seen.returncode == 0 and result["completed"] == 2


def test_tls_servers_may_say_goodbye_and_wait(run, tmp_path):
    """A body that ends with the session, and a server that keeps the socket open until the client goes too."""
    authority, certificate = hub_certificate.make(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certificate)
    door = socket.create_server(("127.0.0.1", 0))

    def serve():
        for _ in range(4):
            peer, _ = door.accept()
            with context.wrap_socket(peer, server_side=True) as wire:
                while b"\r\n\r\n" not in wire.recv(65536):
                    pass
                wire.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"
                             b'data: {"choices":[{"index":0,"text":" a"}]}\n\ndata: [DONE]\n\n')
                wire.unwrap()  # waits for the client's own goodbye

    threading.Thread(target=serve, daemon=True).start()
    seen, result = bench(run, f"https://127.0.0.1:{door.getsockname()[1]}", "--model", "m", "--num-prompts", "4",
                         "--request-timeout", "30", "--server-metrics", "off",
                         env={**os.environ, "SSL_CERT_FILE": authority})
    assert (seen.returncode, result["completed"], result["failed"]) == (0, 4, 0), result["errors"]


def test_a_schedule_beyond_a_year_is_refused(run):
    for flags in (["--request-rate", "1e-10"], ["--request-rate", "1", "--burstiness", "1e308"]):
        seen, result = bench(run, "http://127.0.0.1:1", "--model", "m", "--num-prompts", "2", *flags)
        assert (seen.returncode, result["error"]["code"]) == (2, "usage")


def test_a_key_that_the_server_echoes_is_hidden(run, tmp_path):
    echo = {"events": [[5, {"choices": [{"index": 0, "text": "you are sk-secret-77"}]}]]}
    replies = [echo, {"status": 401, "body": '{"error":{"message":"no such key sk-secret-77"}}'}]
    with TimetableServer(replies) as server:
        log, page = tmp_path / "log.jsonl", tmp_path / "page.html"
        seen, _ = bench(run, server.url, "--model", "m", "--num-prompts", "2", "--max-concurrency", "1", "--request-log",
                        str(log), "--html", str(page), env={**os.environ, "OPENAI_API_KEY": "sk-secret-77"})
        written = seen.stdout + seen.stderr + log.read_text() + page.read_text()
        assert "sk-secret-77" not in written and "***" in written


def test_an_interrupted_run_tells_what_it_has(binary, tmp_path):
    slow = {"events": [[60_000, {"choices": [{"index": 0, "text": "late"}]}]]}
    with TimetableServer([completion(3), slow]) as server:
        process = subprocess.Popen([binary, "bench", "--base-url", server.url, "--model", "m", "--num-prompts", "3",
                                    "--max-concurrency", "1", *SMALL, "--sweep", "concurrency=1,2"],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        while len(server.asked) < 2:
            assert process.poll() is None
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    steps = json.loads(out)["sweep"]
    assert process.returncode == 1 and len(steps) == 1
    assert (steps[0]["completed"], steps[0]["failed"], steps[0]["plimsoll"]["interrupted"]) == (1, 0, True)
    assert "Interrupted: 2 requests" in err


def test_a_report_outlives_a_file_that_cannot_be_written(run):
    with TimetableServer([completion(2)]) as server:
        for flag in ("--html", "--request-log", "-o"):
            seen = run("bench", "--base-url", server.url, "--model", "m", "--random-input-len", "4", "--num-prompts", "1",
                       flag, "/nonexistent/x")
            assert seen.returncode == 2 and "Serving Benchmark Result" in seen.stdout, (flag, seen)
