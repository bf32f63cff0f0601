# SPDX-License-Identifier: Apache-2.0
"""A stand-in of the Hugging Face hub on the loopback, and of the second host (its CDN) that large files come from.

It answers what huggingface_hub asks when it reads models (hub_reference_test.py drives it with that client) and keeps
every request, so that a test can ask who was shown the token and how many bytes of a shard were sent. By hand:
    python3 tests/e2e/hub_server.py org/name=FOLDER ...     prints HF_ENDPOINT=..., one line per request, until Ctrl-C
"""
import gzip
import hashlib
import json
import re
import ssl
import sys
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, quote, unquote, urlsplit

from hub_faults import Answer, Slice, json_answer, refusal
from hub_repo import File, Repo, files_of

SIGNATURE = "Expires=2000000000&Policy=x&Signature="


@dataclass
class Request:
    """One request as it came, with what was answered. `sent` counts bytes of the body, from before they are sent."""

    host: str  # "hub" or "cdn"
    method: str
    target: str
    headers: dict[str, str]  # names in lower case
    body: bytes = b""
    status: int = 0
    sent: int = 0
    file: File | None = None
    path: str = field(init=False)
    query: dict[str, list[str]] = field(init=False)

    def __post_init__(self):
        parts = urlsplit(self.target)
        self.path, self.query = parts.path, parse_qs(parts.query, keep_blank_values=True)


@dataclass
class Fault:
    change: object
    path: re.Pattern
    host: str | None
    method: str | None
    times: int | None
    acted: int = 0

    def meets(self, request: Request) -> bool:
        return (self.times != 0 and self.host in (None, request.host) and self.method in (None, request.method)
                and self.path.search(unquote(request.target)) is not None)


class Hub:
    """The two servers. Use as a context manager; `endpoint` is the value for HF_ENDPOINT."""

    def __init__(self, tls: tuple[str, str] | None = None):
        self.repos: dict[str, Repo] = {}
        self.renamed: dict[str, str] = {}
        self.tokens: dict[str, set[str]] = {}  # token: repositories it opens
        self.requests: list[Request] = []
        self.faults: list[Fault] = []
        self.page_entries = 1000
        self.has_metadata_route = True
        self.uses_resolve_cache = True  # small files come by one more redirect on the hub itself
        self.compresses = True  # text is sent as gzip to who accepts it
        self.closing = threading.Event()
        self.open_now = self.open_at_most = 0  # requests under way at one time
        self._lock = threading.Lock()
        self._scheme = "https" if tls else "http"
        self._servers = {host: self._listen(host, tls) for host in ("hub", "cdn")}
        self.endpoint, self.cdn = (self._url(host) for host in ("hub", "cdn"))

    def _listen(self, host: str, tls) -> "Listener":
        server = Listener(("127.0.0.1", 0), type("Handler", (Handler,), {"hub": self, "host": host}))
        if tls:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*tls)
            # The handshake belongs to the connection's own thread: a client that leaves must not stop the others.
            server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        return server

    def _url(self, host: str) -> str:
        return f"{self._scheme}://127.0.0.1:{self._servers[host].server_address[1]}"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.closing.set()
        for server in self._servers.values():
            server.shutdown()
            server.server_close()

    def repo(self, name: str, files: dict | None = None, **traits) -> Repo:
        made = self.repos[name] = Repo(name, **traits)
        if files is not None:
            made.commit(files)
        return made

    def rename(self, old: str, new: str) -> None:
        repo = self.repos.pop(old)
        repo.name = new
        self.repos[new], self.renamed[old] = repo, new

    def fault(self, change, path: str = "", host: str | None = None, method: str | None = None,
              times: int | None = None) -> Fault:
        """From now on, `change` acts on the next `times` requests whose target holds the pattern `path`."""
        self.faults.append(Fault(change, re.compile(path), host, method, times))
        return self.faults[-1]

    def changed(self, request: Request, answer: Answer) -> Answer:
        for fault in self.faults:
            with self._lock:
                if not fault.meets(request):
                    continue
                fault.acted += 1
                if fault.times:
                    fault.times -= 1
            answer = fault.change(request, answer)
        return answer

    def count(self, change: int) -> None:
        with self._lock:
            self.open_now += change
            self.open_at_most = max(self.open_at_most, self.open_now)

    def seen(self, path: str = "", host: str | None = None, method: str | None = None) -> list[Request]:
        """The requests so far whose target holds the pattern `path`."""
        return [request for request in list(self.requests)
                if host in (None, request.host) and method in (None, request.method)
                and re.search(path, unquote(request.target))]

    def sent(self, path: str = "", host: str | None = None) -> int:
        """Bytes of bodies that were sent in answer to those requests."""
        return sum(request.sent for request in self.seen(path, host))

    def forget(self) -> None:
        self.requests.clear()
        self.faults.clear()

    # What is answered. --------------------------------------------------------------------------------------------

    def answer(self, request: Request) -> Answer:
        if request.host == "cdn":
            return self._from_cdn(request)
        token = request.headers.get("authorization", "").removeprefix("Bearer ")
        if token and token not in self.tokens:
            return refusal(401, None, "Invalid credentials in Authorization header")
        if found := re.match(r"/api/models/([^/]+/[^/]+)(?:/(.*))?$", request.path):
            return self._entered(request, found[1], token, self._api, found[2] or "")
        if found := re.match(r"/api/resolve-cache/models/([^/]+/[^/]+)/([0-9a-f]{40})/(.+)$", request.path):
            return self._entered(request, found[1], token, self._resolve_cached, found[2], unquote(found[3]))
        if found := re.match(r"/([^/]+/[^/]+)/resolve/([^/]+)/(.+)$", request.path):
            return self._entered(request, found[1], token, self._resolve, unquote(found[2]), unquote(found[3]))
        return refusal(404, None, "Sorry, we can't find the page you are looking for.")

    def _entered(self, request: Request, name: str, token: str, route, *rest: str) -> Answer:
        """Whether this token sees the repository at all; then what the route answers."""
        if new := self.renamed.get(name):
            target = request.target.replace(name, new, 1)
            return Answer(307, {"Location": target}, f"Temporary Redirect. Redirecting to {target}".encode())
        repo = self.repos.get(name)
        opens = repo is not None and name in self.tokens.get(token, ())
        if repo is None or (repo.private and not opens):
            if token:
                return refusal(404, "RepoNotFound", "Repository not found")
            return refusal(401, "RepoNotFound", "Invalid username or password.")
        if repo.disabled:
            return refusal(403, None, "Access to this resource is disabled.")
        wants_content = route != self._api or rest[0].startswith(("auth-check", "safetensors-metadata", "xet-"))
        if repo.gated and not opens and wants_content:
            words = f"Access to model {name} is restricted"
            if token:
                return refusal(403, "GatedRepo", f"{words} and you are not in the authorized list. Visit "
                               f"{self.endpoint}/{name} to ask for access.")
            return refusal(401, "GatedRepo", f"{words}. You must have access to it and be authenticated to access it.")
        return route(request, repo, *rest)

    def _api(self, request: Request, repo: Repo, rest: str) -> Answer:
        route, _, argument = rest.partition("/")
        revision, _, below = argument.partition("/")
        below = unquote(below)
        sha = repo.find(unquote(revision) if route in ("revision", "tree", "paths-info") else "main")
        if sha is None:
            return refusal(404, "RevisionNotFound", f"Invalid rev id: {unquote(revision)}")
        if route in ("", "revision"):
            return json_answer(repo.info(sha))
        if route == "tree":
            return self._tree(request, repo, sha, below)
        if route == "paths-info":
            is_json = "json" in request.headers.get("content-type", "")
            wanted = (json.loads(request.body) if is_json else parse_qs(request.body.decode())).get("paths", [])
            return json_answer([repo.commits[sha][path].entry() for path in wanted if path in repo.commits[sha]])
        if route == "refs":
            kinds = (("branches", "heads", repo.branches), ("tags", "tags", repo.tags))
            return json_answer({"converts": []} | {kind: [
                {"name": name, "ref": f"refs/{folder}/{name}", "targetCommit": commit} for name, commit in held.items()]
                for kind, folder, held in kinds})
        if route == "auth-check":
            return Answer(200, {"Content-Type": "text/plain"}, b"OK")
        if route == "safetensors-metadata" and self.has_metadata_route:
            found = repo.headers_of_shards(sha, unquote(argument))
            return json_answer(found) if found else refusal(404, "EntryNotFound", "Entry not found")
        if route == "xet-read-token":
            return json_answer({}, **{"X-Xet-Cas-Url": self.cdn, "X-Xet-Access-Token": "xet_" + sha[:8],
                                      "X-Xet-Token-Expiration": "2000000000"})
        return refusal(404, None, "Sorry, we can't find the page you are looking for.")

    def _tree(self, request: Request, repo: Repo, sha: str, folder: str) -> Answer:
        recursive = request.query.get("recursive", ["false"])[0].lower() in ("true", "1")
        prefix = folder.rstrip("/") + "/" if folder else ""
        entries, folders = [], set()
        for path, file in repo.commits[sha].items():
            if not path.startswith(prefix):
                continue
            parts = path[len(prefix) :].split("/")
            for depth in range(1, len(parts) if recursive else min(len(parts), 2)):
                above = prefix + "/".join(parts[:depth])
                if above not in folders:
                    folders.add(above)
                    oid = hashlib.sha1(above.encode()).hexdigest()
                    entries.append({"type": "directory", "oid": oid, "size": 0, "path": above})
            if recursive or len(parts) == 1:
                entries.append(file.entry())
        if folder and not entries:
            return refusal(404, "EntryNotFound", f"{folder} does not exist on \"{sha}\"")
        start = int(request.query.get("cursor", ["0"])[0])
        answer = json_answer(entries[start : start + self.page_entries])
        answer.headers["X-Repo-Commit"] = sha
        if start + self.page_entries < len(entries):
            following = re.sub(r"[?&]cursor=\d+", "", request.target)
            mark = "&" if "?" in following else "?"
            link = f"{self.endpoint}{following}{mark}cursor={start + self.page_entries}"
            answer.headers["Link"] = f'<{link}>; rel="next"'
        return answer

    def _resolve(self, request: Request, repo: Repo, revision: str, path: str) -> Answer:
        sha = repo.find(revision)
        if sha is None:
            return refusal(404, "RevisionNotFound", f"Invalid rev id: {revision}")
        file = request.file = repo.commits[sha].get(path)
        if file is None:
            return refusal(404, "EntryNotFound", "Entry not found", **{"X-Repo-Commit": sha})
        headers = {"X-Repo-Commit": sha, "Accept-Ranges": "bytes"}
        linked = {"X-Linked-Size": str(file.size), "X-Linked-Etag": f'"{file.etag}"'}
        if file.is_large:
            if file.xet_hash:
                route = f"{self.endpoint}/api/models/{repo.name}/xet-read-token/{sha}"
                linked |= {"X-Xet-Hash": file.xet_hash, "Link": f'<{route}>; rel="xet-auth"'}
            signed = f"{self.cdn}/repos/{quote(repo.name)}/{file.sha256}?path={quote(path, safe='')}&{SIGNATURE}{sha}"
            return Answer(302, headers | linked | {"Location": signed}, f"Found. Redirecting to {signed}".encode())
        if self.uses_resolve_cache:
            target = f"/api/resolve-cache/models/{quote(repo.name)}/{sha}/{quote(path)}"
            return Answer(307, headers | linked | {"ETag": f'"{file.etag}"', "Location": target},
                          f"Temporary Redirect. Redirecting to {target}".encode())
        return self._resolve_cached(request, repo, sha, path)

    def _resolve_cached(self, request: Request, repo: Repo, sha: str, path: str) -> Answer:
        file = request.file = repo.commits.get(sha, {}).get(path)
        if file is None:
            return refusal(404, "EntryNotFound", "Entry not found", **{"X-Repo-Commit": sha})
        answer = part_of(file, request)
        answer.headers |= {"X-Repo-Commit": sha, "ETag": f'W/"{file.etag}"', "Content-Type": "text/plain; charset=utf-8"}
        if self.compresses and answer.status == 200 and "gzip" in request.headers.get("accept-encoding", ""):
            answer.body, answer.chunked = gzip.compress(file.read(0, file.size)), True
            answer.headers["Content-Encoding"] = "gzip"
        return answer

    def _from_cdn(self, request: Request) -> Answer:
        """Signed addresses only, and, as object stores do, no second way of saying who asks."""
        if "authorization" in request.headers:
            return Answer(400, {"Content-Type": "application/xml"}, b"<Error><Code>InvalidArgument</Code></Error>")
        found = re.match(r"/repos/([^/]+/[^/]+)/([0-9a-f]{64})$", request.path)
        repo = self.repos.get(found[1]) if found else None
        sha = request.query.get("Signature", [""])[0]
        if repo is None or sha not in repo.commits:
            return Answer(403, {"Content-Type": "application/xml"}, b"<Error><Code>AccessDenied</Code></Error>")
        file = request.file = repo.commits[sha].get(request.query["path"][0])
        answer = part_of(file, request)
        answer.headers |= {"ETag": f'"{file.sha256}"', "Content-Type": "application/octet-stream"}
        return answer


def part_of(file: File, request: Request) -> Answer:
    """200, or 206 of the part that the Range header names, or 416."""
    asked = re.match(r"bytes=(\d*)-(\d*)$", request.headers.get("range", ""))
    if not asked or asked[0] == "bytes=-":
        return Answer(200, {"Accept-Ranges": "bytes"}, Slice(file, 0, file.size))
    if not asked[1]:
        start, end = max(0, file.size - int(asked[2])), file.size
    else:
        start, end = int(asked[1]), min(file.size, int(asked[2]) + 1 if asked[2] else file.size)
    if start >= end:
        return Answer(416, {"Content-Range": f"bytes */{file.size}"})
    content_range = f"bytes {start}-{end - 1}/{file.size}"
    return Answer(206, {"Accept-Ranges": "bytes", "Content-Range": content_range}, Slice(file, start, end - start))


class Listener(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 128  # with the library's 5, a client of many connections waits a second for its ninth


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    hub: Hub
    host: str

    def log_message(self, *_):
        pass

    def handle(self):
        try:
            super().handle()
        except OSError:
            pass  # the client left: some tests make it, and what it saw is theirs to judge

    def do_GET(self):
        self.hub.count(1)
        try:
            self.respond()
        finally:
            self.hub.count(-1)

    do_HEAD = do_POST = do_GET

    def respond(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        headers = {name.lower(): value for name, value in self.headers.items()}
        request = Request(self.host, self.command, self.path, headers, body)
        self.hub.requests.append(request)
        answer = self.hub.changed(request, self.hub.answer(request))
        request.status = answer.status
        if answer.hang_up:
            self.close_connection = True
            return
        self.send_response_only(answer.status)
        for name, value in answer.headers.items():
            self.send_header(name, value)
        if answer.chunked:
            self.send_header("Transfer-Encoding", "chunked")
        elif answer.status not in (204, 304):
            true_bytes = len(answer.body) * answer.repeats
            self.send_header("Content-Length", str(true_bytes if answer.declared_bytes is None else answer.declared_bytes))
        self.end_headers()
        if self.command != "HEAD":
            self.send_body(request, answer)

    def send_body(self, request: Request, answer: Answer):
        offset = 0
        total = len(answer.body) * answer.repeats
        stops = [stop for stop in (answer.cut_after, answer.stall_after) if stop is not None]
        end = min([total, *stops])
        while offset < end and not self.hub.closing.is_set():
            within = offset % len(answer.body)
            piece = answer.part(within, min(answer.piece, end - offset))
            request.sent += len(piece)
            self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece) if answer.chunked else piece)
            offset += len(piece)
            if answer.pause_s:
                self.hub.closing.wait(answer.pause_s)
        if answer.stall_after is not None and end < total:
            self.wait_until_the_client_leaves()
        if stops or answer.declared_bytes is not None:
            self.close_connection = True
        elif answer.chunked:
            self.wfile.write(b"0\r\n\r\n")

    def wait_until_the_client_leaves(self):
        self.connection.settimeout(0.05)
        while not self.hub.closing.is_set():
            try:
                if not self.connection.recv(1):
                    return
            except TimeoutError:
                continue


def main(arguments: list[str]) -> int:
    if not arguments or any("=" not in argument for argument in arguments):
        print(__doc__, file=sys.stderr)
        return 2
    with Hub() as hub:
        for argument in arguments:
            name, _, folder = argument.partition("=")
            hub.repo(name, files_of(Path(folder)))
        print(f"HF_ENDPOINT={hub.endpoint}", flush=True)
        shown = 0
        try:
            while not hub.closing.wait(0.2):
                for request in hub.requests[shown:]:
                    wanted = request.headers.get("range", "")
                    print(request.host, request.method, request.target, wanted, request.status, request.sent, flush=True)
                    shown += 1
        except KeyboardInterrupt:
            return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
