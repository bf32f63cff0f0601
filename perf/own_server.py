# SPDX-License-Identifier: Apache-2.0
"""A `plimsoll serve` of one's own, for measurements: started on a free port, asked, stopped."""
import json
import re
import subprocess
import time
import urllib.request


class OwnServer:
    def __init__(self, program, model, *flags):
        self.process = subprocess.Popen([program, "serve", model, "--port", "0", *flags], stderr=subprocess.PIPE, text=True)
        for line in self.process.stderr:
            if found := re.match(r"Listening on (\S+)", line):
                self.url = found[1]
                return
        raise SystemExit(f"the server did not start: exit status {self.process.wait()}")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.stderr.read()
        self.process.wait(60)

    def metrics(self):
        """Every metric by its name without labels; of several the last."""
        text = urllib.request.urlopen(self.url + "/metrics", timeout=30).read().decode()
        lines = (line.rsplit(" ", 1) for line in text.splitlines() if line and not line.startswith("#"))
        return {name.split("{")[0]: float(value) for name, value in lines}

    def stream(self, path, body):
        """Posts, and yields (seconds since it was sent, event) for each event."""
        request = urllib.request.Request(self.url + path, json.dumps({**body, "stream": True}).encode(),
                                         {"Content-Type": "application/json"})
        sent = time.perf_counter()
        with urllib.request.urlopen(request, timeout=600) as answer:
            for line in answer:
                if line.startswith(b"data: {"):
                    yield time.perf_counter() - sent, json.loads(line[6:])
