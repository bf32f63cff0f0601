# SPDX-License-Identifier: Apache-2.0
"""Runs plimsoll against the hub's stand-in, and holds every run to what no run may do: show the token to anybody but
the hub, print it, crash, or write outside its own folder."""
import json
import os
import re
import subprocess
from pathlib import Path

from hub_server import Hub

TOKEN = "hf_" + "Tt4" * 11 + "t"
NO_MODEL_FILES = re.compile(r"expected|transformers5")
# Three special tokens and one letter: a model without any tokenizer is an error of its own.
TOKENIZER = {
    "version": "1.0", "normalizer": None, "pre_tokenizer": None, "post_processor": None, "decoder": None,
    "added_tokens": [{"id": number, "content": content, "special": True, "single_word": False, "lstrip": False,
                      "rstrip": False, "normalized": False} for number, content in enumerate(("<unk>", "<s>", "</s>"))],
    "model": {"type": "BPE", "vocab": {"<unk>": 0, "<s>": 1, "</s>": 2, "a": 3}, "merges": [], "unk_token": "<unk>",
              "fuse_unk": False, "byte_fallback": False, "dropout": None}}


def model_files(folder: Path) -> dict[str, bytes]:
    """A golden model as its hub repository would hold it."""
    return {"tokenizer.json": json.dumps(TOKENIZER).encode()} | {path.name: path.read_bytes() for path in sorted(folder.iterdir()) if not NO_MODEL_FILES.search(path.name)}


def listing(folder: Path) -> dict:
    """Every path below a folder: where a link points, what a file holds; of kept listings, what they say."""
    found = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if path.is_symlink():
            found[name] = f"-> {path.readlink()}"
        elif path.parent.name == "trees":
            found[name] = json.loads(path.read_text())
        elif path.is_file():
            found[name] = path.read_bytes().hex()[:4000] + f" {path.stat().st_size}"
    return found


class Driver:
    """Calls the binary with a home folder and a token of its own, and with HF_ENDPOINT at the stand-in."""

    def __init__(self, binary: str, hub: Hub, home: Path):
        self.binary, self.hub, self.home = binary, hub, home
        self.cache = home / "hf/hub"
        self.around = home.parent / "outside.txt"
        self.around.write_text("untouched")
        home.mkdir(exist_ok=True)

    def environment(self, token: str = "", **more: str) -> dict[str, str]:
        settings = {"PATH": os.environ["PATH"], "HOME": str(self.home), "HF_HOME": str(self.home / "hf"),
                    "HF_ENDPOINT": self.hub.endpoint, "HF_HUB_ETAG_TIMEOUT": "2", "HF_HUB_DOWNLOAD_TIMEOUT": "2",
                    "PLIMSOLL_HUB_MAX_WAIT_S": "1"}
        return settings | ({"HF_TOKEN": token} if token else {}) | more

    def __call__(self, *arguments: str, token: str = "", user: int | None = None, stdin: str = "",
                 **environment: str):
        before = set(os.listdir(self.home.parent)) | {self.home.name}
        done = subprocess.run([self.binary, *arguments], env=self.environment(token, **environment), cwd=self.home,
                              user=user, input=stdin.encode(), capture_output=True, timeout=60)
        done.stdout, done.stderr = (text.decode("utf-8", "replace") for text in (done.stdout, done.stderr))
        assert done.returncode in (0, 1, 2, 3, 4, 5), (done.returncode, done.stderr)
        assert TOKEN not in done.stdout + done.stderr
        assert set(os.listdir(self.home.parent)) == before and self.around.read_text() == "untouched"
        self.nobody_else_saw_the_token()
        return done

    def document(self, *arguments: str, expected: int | tuple = 0, **more) -> dict:
        """The one JSON document of a run that has to end with this status."""
        done = self(*arguments, "--format", "json", **more)
        allowed = expected if isinstance(expected, tuple) else (expected,)
        assert done.returncode in allowed, (done.returncode, done.stdout[-2000:], done.stderr)
        return json.loads(done.stdout)

    def refused(self, *arguments: str, status: int = 5, says: tuple = (), **more) -> str:
        """The one to three lines of a refusal, each pattern of `says` in them; the JSON error says the same."""
        done = self(*arguments, "--format", "json", "-q", **more)
        assert done.returncode == status, (done.returncode, done.stdout[-2000:], done.stderr)
        lines = done.stderr.strip().splitlines()
        assert 1 <= len(lines) <= 3, done.stderr
        for pattern in says:
            assert re.search(pattern, done.stderr, re.IGNORECASE), (pattern, done.stderr)
        error = json.loads(done.stdout)["error"]
        assert error["code"] == {5: "network", 3: "malformed", 4: "unsupported", 2: "usage"}[status]
        assert error["message"] in done.stderr.replace("\n", " ") or error["message"] in done.stderr
        return done.stderr

    def nobody_else_saw_the_token(self) -> None:
        own = self.hub.endpoint.split("://")[1]
        for request in list(self.hub.requests):
            told = TOKEN in request.target or any(TOKEN in value for value in request.headers.values())
            assert not told or (request.host == "hub" and request.headers["host"] == own), request

    def snapshot(self, name: str, sha: str) -> Path:
        return self.cache / f"models--{name.replace('/', '--')}" / "snapshots" / sha
