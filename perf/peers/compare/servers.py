# SPDX-License-Identifier: Apache-2.0
"""The engines that are compared, each as a process behind a port of the loopback.

A server is started once for a group of measurements and is stopped (SIGSTOP) while another one is measured: then it takes no
time of any core, and taking turns costs no start. All run under the same nice value.
"""
import http.client
import json
import os
import re
import signal
import socket
import subprocess
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
THREADS = 2
START_LIMIT_S = 300


class NotStarted(Exception):
    """The engine ended or stayed silent; it says why in its log."""


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Server:
    """One process. `shape` says what it is asked: (sequences at once, tokens of the longest)."""
    name = ""

    def __init__(self, model, shape, places, log_folder, isa=None):
        self.model, self.places, self.isa = model, places, isa
        self.sequences, self.longest = shape
        self.port = free_port()
        self.log = log_folder / f"{self.name}-{model.name}-{self.port}.log"
        self.places.packed.mkdir(parents=True, exist_ok=True)
        environment = {**os.environ, **self.more_environment()}
        self.started_at = time.perf_counter()
        with open(self.log, "w", encoding="utf-8") as log:
            self.process = subprocess.Popen(self.command(), stdout=log, stderr=log, env=environment, start_new_session=True)

    def more_environment(self):
        return {}

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}"

    @property
    def pid(self):
        return self.process.pid

    def answers(self):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=5)
        try:
            connection.request("GET", "/v1/models")
            return connection.getresponse().status == 200
        except OSError:
            return False
        finally:
            connection.close()

    def wait(self, pause_s=0.05):
        deadline = time.monotonic() + START_LIMIT_S
        while not self.answers():
            if self.process.poll() is not None or time.monotonic() > deadline:
                tail = self.log.read_text(errors="replace")[-600:]
                self.stop()
                raise NotStarted(f"{self.name} did not start with {self.model.name}:\n{tail}")
            time.sleep(pause_s)
        return self

    def first_token_s(self):
        """Seconds from the start of the process to its first token, for a prompt of a few words."""
        self.wait(0.002)
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        body = {"model": self.asked_name(), "prompt": "four words of text", "max_tokens": 1, "stream": True, "temperature": 0}
        connection.request("POST", "/v1/completions", json.dumps(body), {"Content-Type": "application/json"})
        answer = connection.getresponse()
        while not answer.readline().startswith(b"data: {"):
            pass
        seconds = time.perf_counter() - self.started_at
        connection.close()
        return seconds

    def asked_name(self):
        return "m"

    def freeze(self):
        os.killpg(self.pid, signal.SIGSTOP)

    def thaw(self):
        os.killpg(self.pid, signal.SIGCONT)

    def stop(self):
        if self.process.poll() is None:
            self.process.terminate()
            self.thaw()
            try:
                self.process.wait(30)
            except subprocess.TimeoutExpired:
                os.killpg(self.pid, signal.SIGKILL)
                self.process.wait(30)

    def memory(self):
        """Bytes that are in memory now: in all, anonymous, and of files below the folder of packed weights."""
        found = {"resident": 0, "anonymous": 0, "packed": 0}
        is_packed = False
        for line in Path(f"/proc/{self.pid}/smaps").read_text().splitlines():
            key, _, value = line.partition(":")
            if not value.strip().endswith("kB"):
                is_packed = str(self.places.packed) in line
            elif key == "Rss":
                found["resident"] += int(value.split()[0]) * 1024
                found["packed"] += int(value.split()[0]) * 1024 if is_packed else 0
            elif key == "Anonymous":
                found["anonymous"] += int(value.split()[0]) * 1024
        return found

    def told(self):
        """What the engine says of its own memory; nothing by most."""
        return None


class Plimsoll(Server):
    name = "plimsoll"

    def told(self):
        line = re.search(r"^plimsoll memory: (\{.*\})$", self.log.read_text(), re.MULTILINE)
        return json.loads(line[1]) if line else None

    def more_environment(self):
        return {"PLIMSOLL_ISA": self.isa} if self.isa else {}

    def command(self):
        return [str(self.places.plimsoll), "serve", str(self.model.file), "--port", str(self.port), "--served-model-name", "m",
                "--threads", str(THREADS), "--max-num-seqs", str(self.sequences), "--max-model-len", str(self.longest),
                "--packed-cache", str(self.places.packed), *self.places.plimsoll_flags]


class Llama(Server):
    name = "llama.cpp"

    def folder(self):
        return self.places.peers / f"llama-{self.isa or self.places.llama}" / "bin"

    def more_environment(self):
        return {"LD_LIBRARY_PATH": str(self.folder())}

    def command(self):
        """Each slot has cells of its own: -kvu would let every stream's attention go over the cells of all."""
        return [str(self.folder() / "llama-server"), "-m", str(self.model.file), "--host", "127.0.0.1", "--port", str(self.port), "-t",
                str(THREADS), "-tb", str(THREADS), "-np", str(self.sequences), "-c", str(self.sequences * self.longest), "-no-kvu", "-b",
                "2048", "-ub", "512", "--no-warmup", "--cache-ram", "0", "--alias", "m"]


class OpenVino(Server):
    name = "OpenVINO"

    def command(self):
        return [str(self.places.peers / "openvino/bin/python"), str(HERE / "openvino_front.py"), str(self.model.file), str(self.port),
                "--threads", str(THREADS), "--sequences", str(max(self.sequences, 2))]


ENGINES = {"plimsoll": Plimsoll, "llama": Llama, "openvino": OpenVino}
