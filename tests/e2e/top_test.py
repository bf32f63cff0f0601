# SPDX-License-Identifier: Apache-2.0
"""`plimsoll top` from outside: one document, plain lines, exit codes."""
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

PAGE = 'vllm:num_requests_running{model_name="m\x1b[2J"} %d\nvllm:generation_tokens_total %d\n'


class Pages(BaseHTTPRequestHandler):
    def do_GET(self):
        self.server.count += 1
        body = (PAGE % (self.server.count, 10 * self.server.count)).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


@pytest.fixture
def engine():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Pages)
    server.count = 0
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()


def test_json_is_one_document_of_the_last_frame(run, engine):
    done = run("top", engine, "--count", "2", "--interval", "0.05", "--format", "json")
    assert done.returncode == 0, done.stderr
    row = json.loads(done.stdout)["endpoints"][0]
    assert (row["engine"], row["running"], row["generated_tokens"]) == ("vllm", 3, 30)
    assert row["generated_tokens_per_s"] > 0 and row["kv_usage"] is None


def test_text_is_plain_lines_and_what_is_gone_is_shown(run, engine):
    done = run("top", engine, "http://127.0.0.1:1", "--once", "--interval", "0.05")
    assert done.returncode == 0, done.stderr
    assert "\x1b" not in done.stdout and "unreachable" in done.stdout
    assert len(done.stdout.splitlines()) == 3


def test_nothing_reached_is_a_network_error(run):
    done = run("top", "http://127.0.0.1:1", "--once", "--interval", "0.05", "--format", "json")
    assert done.returncode == 5
    assert json.loads(done.stdout)["error"]["code"] == "network"
