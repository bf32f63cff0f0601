# SPDX-License-Identifier: Apache-2.0
"""What can go wrong between a hub and its client: each fault changes an answer before it is sent.

A fault is a function (request, answer) -> answer; `Hub.fault` says on which requests it acts and how often.
"""
import json
from dataclasses import dataclass, field


class Slice:
    """Part of a file: what a body is read from when it is not bytes."""

    def __init__(self, file, start: int, length: int):
        self.file, self.start, self.length = file, start, length

    def __len__(self) -> int:
        return self.length

    def read(self, offset: int, length: int) -> bytes:
        return self.file.read(self.start + offset, max(0, min(length, self.length - offset)))


@dataclass
class Answer:
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes | Slice = b""
    declared_bytes: int | None = None  # what Content-Length says; None: the truth
    cut_after: int | None = None  # bytes of the body after which the connection is closed
    hang_up: bool = False  # the connection is closed without an answer
    stall_after: int | None = None  # bytes of the body after which nothing comes until the client leaves
    piece: int = 1 << 16  # bytes that are sent at once
    pause_s: float = 0.0  # wait between two pieces
    flipped: int | None = None  # position in the body of a byte that is sent wrong
    chunked: bool = False
    repeats: int = 1  # the body is sent that often

    def part(self, offset: int, length: int) -> bytes:
        if isinstance(self.body, bytes):
            piece = self.body[offset : offset + length]
        else:
            piece = self.body.read(offset, length)
        if self.flipped is not None and offset <= self.flipped < offset + len(piece):
            at = self.flipped - offset
            piece = piece[:at] + bytes([piece[at] ^ 1]) + piece[at + 1 :]
        return piece


def json_answer(content, status: int = 200, **headers: str) -> Answer:
    return Answer(status, {"Content-Type": "application/json; charset=utf-8", **headers}, json.dumps(content).encode())


def refusal(status: int, code: str | None, message: str, **headers: str) -> Answer:
    answer = json_answer({"error": message}, status, **headers)
    answer.headers["X-Error-Message"] = message
    if code:
        answer.headers["X-Error-Code"] = code
    return answer


def replaced(answer: Answer):
    """Another answer altogether."""
    return lambda request, old: answer


def status(code: int, message: str = "", **headers: str):
    """An error of the server, or its rate limit: headers are given with _ for -."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return lambda request, old: Answer(code, {"Content-Type": "text/plain", **named}, message.encode())


def page(text: str = "<!doctype html><html><body>Please log in to the guest network</body></html>", code: int = 200):
    """What captive portals and proxies answer."""
    return lambda request, old: Answer(code, {"Content-Type": "text/html"}, text.encode())


def redirect(target, code: int = 302):
    """To a URL, or to what a function of the request answers."""

    def change(request, old):
        location = target(request) if callable(target) else target
        old.headers["Location"] = location
        return Answer(code, {name: old.headers[name] for name in old.headers if name != "Content-Length"})

    return change


def changed(**fields):
    """Fields of the answer set to other values: cut_after=100, declared_bytes=5, hang_up=True, piece=1, ..."""

    def change(request, answer):
        for name, value in fields.items():
            setattr(answer, name, value)
        return answer

    return change


def header(name: str, value: str | None):
    """A header set to another value; None takes it away."""

    def change(request, answer):
        answer.headers.pop(name, None)
        if value is not None:
            answer.headers[name] = value
        return answer

    return change


def range_ignored(request, answer):
    """200 with the whole file where a part was asked for."""
    if answer.status in (206, 416) and request.file:
        answer.status = 200
        answer.headers.pop("Content-Range", None)
        answer.body = Slice(request.file, 0, request.file.size)
    return answer


def range_shifted(by: int):
    """206 of another part than the one that was asked for, and it says so."""

    def change(request, answer):
        if answer.status == 206:
            start, size = max(0, answer.body.start + by), request.file.size
            answer.body = Slice(request.file, start, min(len(answer.body), size - start))
            answer.headers["Content-Range"] = f"bytes {start}-{start + len(answer.body) - 1}/{size}"
        return answer

    return change
