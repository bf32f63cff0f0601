# SPDX-License-Identifier: Apache-2.0
"""An endpoint of a known timetable, written without any code of the product: a list of replies, used in order of
arrival; the last one repeats. A reply is {"events": [[ms, data], ...], "done": True}, {"status": 500, "body": "..."},
{"close_ms": 50}, or {"lines": [[ms, object], ...]} for newline-delimited JSON. What was asked is kept."""
import json
import ssl
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class TimetableServer(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 256

    def __init__(self, replies, tls=None):
        super().__init__(("127.0.0.1", 0), Handler)
        self.replies, self.asked, self.paths, self.peers, self.ids = replies, [], [], set(), []
        self.lock = threading.Lock()
        self.scheme = "http"
        if tls:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*tls)
            self.socket = context.wrap_socket(self.socket, server_side=True)
            self.scheme = "https"
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def url(self):
        return f"{self.scheme}://127.0.0.1:{self.server_address[1]}"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.shutdown()
        self.server_close()


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def whole(self, status, body):
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        if self.path == "/v1/models":
            return self.whole(200, b'{"object":"list","data":[{"id":"m"}]}')
        self.whole(404, b"{}")

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        arrived = time.monotonic()
        with self.server.lock:
            reply = self.server.replies[min(len(self.server.asked), len(self.server.replies) - 1)]
            self.server.asked.append(json.loads(body))
            self.server.paths.append(self.path)
            self.server.peers.add(self.client_address)
            self.server.ids.append(self.headers.get("X-Request-Id"))
        try:
            self.answer(reply, arrived)
        except OSError:
            pass

    def answer(self, reply, arrived):
        if "close_ms" in reply:
            time.sleep(reply["close_ms"] / 1e3)
            self.close_connection = True
            return
        if reply.get("status", 200) != 200:
            return self.whole(reply["status"], reply.get("body", '{"error":{"message":"boom"}}').encode())
        is_lines = "lines" in reply
        self.send_response(200)
        self.send_header("Content-Type", "application/x-ndjson" if is_lines else "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for at, data in reply["lines"] if is_lines else reply["events"]:
            time.sleep(max(0, arrived + at / 1e3 - time.monotonic()))
            text = data if isinstance(data, str) else json.dumps(data)
            self.chunk(f"{text}\n" if is_lines else f"data: {text}\n\n")
        if not is_lines and reply.get("done", True):
            self.chunk("data: [DONE]\n\n")
        self.wfile.write(b"0\r\n\r\n")

    def chunk(self, text):
        data = text.encode()
        self.wfile.write(b"%x\r\n" % len(data) + data + b"\r\n")
        self.wfile.flush()


def completion(tokens, first_ms=20, gap_ms=5):
    """`tokens` tokens of a completion, then the usage."""
    events = [[first_ms + gap_ms * i, {"choices": [{"index": 0, "text": " the", "finish_reason": None}]}]
              for i in range(tokens)]
    last = events[-1][0] if events else first_ms
    usage = {"prompt_tokens": 5, "completion_tokens": tokens, "total_tokens": 5 + tokens}
    return {"events": [*events, [last, {"choices": [], "usage": usage}]]}
