# SPDX-License-Identifier: Apache-2.0
"""A thin HTTP front for OpenVINO GenAI's continuous batching, which comes without a server: /v1/models and streamed /v1/completions.

usage: openvino_front.py MODEL PORT [--threads N] [--sequences N]

One thread runs the pipeline's steps, one per connection waits for its tokens; text is tokenized by the pipeline's own tokenizer
without special tokens, a list of ids is taken as it is. Greedy, and always the full number of tokens. A chunk's text is one
letter: turning ids into text is left out, which is in this peer's favour.
"""
import argparse
import json
import queue
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy
import openvino
import openvino_genai

CACHE_GB = 2
STEP_TOKENS = 512


class Engine:
    """The pipeline and its one thread. A request's tokens come out of its queue; None ends them."""

    def __init__(self, model, threads, sequences):
        schedule = openvino_genai.SchedulerConfig()
        schedule.cache_size = CACHE_GB
        schedule.max_num_seqs = sequences
        schedule.max_num_batched_tokens = STEP_TOKENS
        schedule.enable_prefix_caching = True
        schedule.dynamic_split_fuse = True
        self.pipeline = openvino_genai.ContinuousBatchingPipeline(
            model, schedule, "CPU", {"INFERENCE_NUM_THREADS": threads, "PERFORMANCE_HINT": "LATENCY"})
        self.tokenizer = self.pipeline.get_tokenizer()
        self.ids_of("once before threads do: two that are first at once wait for each other forever")
        self.inbox = queue.Queue()
        self.running = {}
        self.accepted = 0
        threading.Thread(target=self.run, daemon=True).start()

    def ids_of(self, prompt):
        if isinstance(prompt, list):
            return prompt
        return self.tokenizer.encode(prompt, add_special_tokens=False).input_ids.data[0].tolist()

    def accept(self, ids, config, tokens):
        self.accepted += 1
        handle = self.pipeline.add_request(self.accepted, openvino.Tensor(numpy.array([ids], dtype=numpy.int64)), config)
        self.running[self.accepted] = (handle, tokens)

    def take_new(self):
        """Waits for a request when there is nothing else to do."""
        if not self.running:
            self.accept(*self.inbox.get())
        while not self.inbox.empty():
            self.accept(*self.inbox.get())

    def run(self):
        while True:
            self.take_new()
            if self.pipeline.has_non_finished_requests():
                self.pipeline.step()
            for number, (handle, tokens) in list(self.running.items()):
                while handle.can_read():
                    for output in handle.read().values():
                        for token in output.generated_ids:
                            tokens.put(token)
                if handle.get_status() != openvino_genai.GenerationStatus.RUNNING and not handle.can_read():
                    tokens.put(None)
                    del self.running[number]


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    engine = None

    def log_message(self, *_):
        pass

    def do_GET(self):
        body = json.dumps({"object": "list", "data": [{"id": "m", "object": "model"}]}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def event(self, content):
        text = content if isinstance(content, str) else json.dumps(content)
        data = f"data: {text}\n\n".encode()
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
        self.wfile.flush()

    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        ids = self.engine.ids_of(asked["prompt"])
        config = openvino_genai.GenerationConfig()
        config.max_new_tokens = asked["max_tokens"]
        config.ignore_eos = True
        config.do_sample = False
        tokens = queue.Queue()
        self.engine.inbox.put((ids, config, tokens))
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        count = 0
        while tokens.get() is not None:
            count += 1
            self.event({"choices": [{"index": 0, "text": "x"}]})
        usage = {"prompt_tokens": len(ids), "completion_tokens": count, "total_tokens": len(ids) + count}
        self.event({"choices": [], "usage": usage})
        self.event("[DONE]")
        self.wfile.write(b"0\r\n\r\n")


class Server(ThreadingHTTPServer):
    request_queue_size = 128
    daemon_threads = True


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("port", type=int)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--sequences", type=int, default=32)
    arguments = parser.parse_args()
    Handler.engine = Engine(arguments.model, arguments.threads, arguments.sequences)
    Server(("127.0.0.1", arguments.port), Handler).serve_forever()


if __name__ == "__main__":
    main()
