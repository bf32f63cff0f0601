# SPDX-License-Identifier: Apache-2.0
"""Starts `serve` on a free port, learns the port from its start-up lines, and stops it."""
import json
import re
import signal
import subprocess
import threading
import urllib.request


class Server:
    def __init__(self, binary, model, *flags, environment=None):
        command = [binary, "serve", str(model), "--port", "0", *flags]
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True,
                                        env=environment)
        self.lines = []
        self.url = None
        for line in self.process.stderr:
            self.lines.append(line.rstrip("\n"))
            found = re.search(r"Listening on (http://\S+)", line)
            if found:
                self.url = found.group(1)
                break
        # Whatever comes later must not fill the pipe.
        self.drain = threading.Thread(target=lambda: self.lines.extend(self.process.stderr), daemon=True)
        self.drain.start()
        if self.url is None:
            raise RuntimeError(f"serve ended with {self.process.wait()}: {self.lines}")

    def stop(self, sent=signal.SIGTERM):
        if self.process.poll() is None:
            self.process.send_signal(sent)
        return self.process.wait(timeout=60)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    def memory(self):
        line = next(line for line in self.lines if line.startswith("plimsoll memory: "))
        return json.loads(line.removeprefix("plimsoll memory: "))

    def metrics(self):
        """Name (without labels) -> sum over its rows."""
        with urllib.request.urlopen(self.url + "/metrics", timeout=30) as answer:
            rows = answer.read().decode()
        values = {}
        for row in rows.splitlines():
            if row and not row.startswith("#"):
                name, value = row.rsplit(" ", 1)
                name = name.split("{")[0]
                values[name] = values.get(name, 0.0) + float(value)
        return values
