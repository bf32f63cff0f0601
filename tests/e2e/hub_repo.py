# SPDX-License-Identifier: Apache-2.0
"""What the hub's stand-in holds: repositories, their commits, and files with the digests that a hub knows of them.

A file's content is bytes, or a path on disk that is read by ranges, so that sparse folders of hundreds of gigabytes can
be served. The digests of files too large to read stand in for themselves: they are made of the name and the size.
"""
import hashlib
import json
import struct
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

LARGE_SUFFIXES = (".safetensors", ".gguf", ".bin", ".pt", ".pth", ".msgpack", ".h5", ".onnx", ".model")
LARGE_BYTES = 10_000_000
DIGESTED_BYTES = 256 << 20


def safetensors(tensors: dict, metadata: dict | None = None, pad_header_to: int = 0) -> bytes:
    """A safetensors file of zeros: tensors is {name: (dtype, shape, bytes)}."""
    header, end = ({"__metadata__": metadata} if metadata else {}), 0
    for name, (dtype, shape, size) in tensors.items():
        header[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [end, end + size]}
        end += size
    text = json.dumps(header).encode()
    text = text.ljust(max(pad_header_to, (len(text) + 7) // 8 * 8))
    return struct.pack("<Q", len(text)) + text + bytes(end)


@dataclass
class File:
    path: str
    content: bytes | Path
    is_large: bool | None = None
    xet_hash: str | None = None

    def __post_init__(self):
        if self.is_large is None:
            self.is_large = self.path.endswith(LARGE_SUFFIXES) or self.size > LARGE_BYTES

    @property
    def size(self) -> int:
        return len(self.content) if isinstance(self.content, bytes) else self.content.stat().st_size

    def read(self, start: int, length: int) -> bytes:
        if isinstance(self.content, bytes):
            return self.content[start : start + length]
        with open(self.content, "rb") as source:
            source.seek(start)
            return source.read(length)

    @cached_property
    def sha256(self) -> str:
        if self.size > DIGESTED_BYTES:
            return hashlib.sha256(f"{self.path} {self.size}".encode()).hexdigest()
        return hashlib.sha256(self.read(0, self.size)).hexdigest()

    @cached_property
    def oid(self) -> str:
        """The git blob: of the content, or of the pointer that git keeps in place of a large file."""
        content = self.pointer if self.is_large else self.read(0, self.size)
        return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()

    @property
    def pointer(self) -> bytes:
        return f"version https://git-lfs.github.com/spec/v1\noid sha256:{self.sha256}\nsize {self.size}\n".encode()

    @property
    def etag(self) -> str:
        return self.sha256 if self.is_large else self.oid

    def entry(self) -> dict:
        """The object that the tree and paths-info routes answer."""
        answer = {"type": "file", "oid": self.oid, "size": self.size, "path": self.path}
        if self.is_large:
            answer["lfs"] = {"oid": self.sha256, "size": self.size, "pointerSize": len(self.pointer)}
        if self.xet_hash:
            answer["xetHash"] = self.xet_hash
        return answer

    def safetensors_header(self) -> dict:
        (length,) = struct.unpack("<Q", self.read(0, 8))
        return json.loads(self.read(8, length))


def files_of(folder: Path) -> dict[str, Path]:
    """The files of a model folder, as commit() takes them."""
    return {path.relative_to(folder).as_posix(): path for path in sorted(folder.rglob("*")) if path.is_file()}


@dataclass
class Repo:
    name: str
    private: bool = False
    gated: bool | str = False
    disabled: bool = False
    card: dict = field(default_factory=dict)
    commits: dict[str, dict[str, File]] = field(default_factory=dict)
    branches: dict[str, str] = field(default_factory=dict)
    tags: dict[str, str] = field(default_factory=dict)
    pulls: dict[str, str] = field(default_factory=dict)

    def commit(self, files: dict[str, bytes | str | dict | Path | File], branch: str = "main") -> str:
        """Adds a commit of exactly these files and moves the branch there. JSON may be given as a dict."""
        held = {}
        for path, content in files.items():
            if isinstance(content, dict):
                content = json.dumps(content)
            if isinstance(content, str):
                content = content.encode()
            held[path] = content if isinstance(content, File) else File(path, content)
        listing = [self.name, branch, len(self.commits), [file.entry() for file in held.values()]]
        sha = hashlib.sha1(json.dumps(listing).encode()).hexdigest()
        self.commits[sha] = held
        self.branches[branch] = sha
        return sha

    def find(self, revision: str) -> str | None:
        for named in (self.branches, self.tags, self.pulls):
            if revision in named:
                return named[revision]
        return revision if revision in self.commits else None

    def info(self, sha: str) -> dict:
        """The answer of /api/models/NAME."""
        files = self.commits[sha]
        answer = {
            "_id": hashlib.sha1(self.name.encode()).hexdigest()[:24], "id": self.name, "modelId": self.name,
            "author": self.name.split("/")[0], "sha": sha, "private": self.private, "gated": self.gated,
            "disabled": self.disabled, "downloads": 0, "likes": 0, "lastModified": "2026-01-15T09:30:00.000Z",
            "createdAt": "2026-01-15T09:30:00.000Z", "tags": [], "library_name": "transformers",
            "siblings": [{"rfilename": path} for path in files], "usedStorage": sum(f.size for f in files.values()),
        }
        if self.card:
            answer["cardData"] = self.card
            if "license" in self.card:
                answer["tags"].append(f"license:{self.card['license']}")
        if "config.json" in files:
            config = json.loads(files["config.json"].read(0, LARGE_BYTES))
            answer["config"] = {key: config[key] for key in ("architectures", "model_type") if key in config}
        return answer

    def headers_of_shards(self, sha: str, index: str) -> dict | None:
        """The one-call answer: the header of every shard that the index names. None without that index."""
        files = self.commits[sha]
        if index not in files:
            return None
        content = json.loads(files[index].read(0, files[index].size))
        shards = sorted(set(content.get("weight_map", {}).values()))
        return {"index": {"metadata": content.get("metadata")},
                "headers": {shard: files[shard].safetensors_header() for shard in shards if shard in files}}
