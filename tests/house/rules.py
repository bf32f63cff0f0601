# SPDX-License-Identifier: Apache-2.0
"""The house rules that a machine can read off the sources: arrows between rooms, sizes, names, places.

Each rule takes the root of a checkout and returns the violations as sentences "file:line: what is wrong".
The table of arrows is the one of docs: ARCHITECTURE.md draws it, this file enforces it.
"""
import re
from pathlib import Path

# room -> rooms it may include directly; `base` is open to all, `report` to every room above floor 2.
ARROWS = {
    "base": set(),
    "artifact": set(),
    "facts": set(),
    "kernels": set(),
    "http": set(),
    "report": set(),
    "workload": set(),
    "model": {"artifact"},
    "text": {"artifact"},
    "schedule": set(),
    "memory": {"schedule", "model", "artifact", "facts"},
    "bench": {"http", "text", "workload"},
    "engine": {"memory", "schedule", "model", "artifact", "kernels"},
    "plan": {"memory", "model", "facts"},
    "inspect": {"memory", "text", "model", "artifact", "facts"},
    "serve": {"engine", "schedule", "text", "http"},
    "verify": {"plan", "memory", "facts"},
    "deploy": {"plan", "facts"},
    "fleet": {"plan", "schedule", "workload"},
}
GROUND = {"base", "artifact", "facts", "kernels", "http", "report", "workload"}
ARROWS["loop"] = set(ARROWS)
ARROWS["cli"] = set(ARROWS)

# Faces beside src/<room>/<room>.h; a face also opens those headers of its room that it names.
FACES = {
    "artifact": {"given_path.h"},  # names, for those who show them
    "memory": {"kv_cache.h", "embedded.h", "embedded_cache.h"},
    # Processors are read beside the spec, not into it; who declares a quantization is asked of the folder.
    "model": {"image_tokens.h", "declarations.h"},
    "http": {"client.h", "event_stream.h", "timed_server.h"},  # the load client keeps its own clock on every chunk
    "kernels": {"elementwise.h", "to_blocks.h"},
    "schedule": {"cache_group.h"},  # how many blocks a kind of cache needs
    # One table of names for flags and report; what several runs amount to.
    "bench": {"backend.h", "compare.h", "flags.h", "limits.h", "page.h", "progress.h", "selftest.h", "sweep.h", "top.h"},
    "report": {"chart.h"},  # SVG, for those who make pages
    "text": {
        "chat.h", "prompt_guard.h",  # what a server adds to a bare template
        "token_lines.h", "template_renderer.h",  # one line's work
        "parsers/output_parser.h",
    },
    "inspect": {"compare.h"},  # of two reports
    "loop": {"demo.h"},
}

# Third-party headers: prefix -> files that may include it, as patterns below src/.
THIRD_PARTY = {
    "tl/": r"base/result\.h",
    "simdjson": r"base/(json\w*|utf8)\.cpp",
    "nlohmann/": r"base/json\w*\.cpp",
    "spdlog/": r"base/\w+\.cpp",
    "fmt/": r".+\.cpp",
    "openssl/": r"base/hash\.cpp|http/.+\.cpp",
    "boost/": r"http/.+\.cpp",
    "curl/": r"artifact/hub/\w+\.cpp",
    "CLI/": r"cli/.+\.cpp",
    "pcre2.h": r"text/.+\.cpp",
    "utf8proc.h": r"text/.+\.cpp",
    "xgrammar/": r"text/grammar/.+\.cpp",
    "xxhash.h": r"schedule/.+\.cpp",
    "prometheus/": r"serve/.+\.cpp",
    "yaml-cpp/": r"deploy/.+\.cpp",
    "hwy/": r"kernels/.+\.cpp",
    "immintrin.h": r"kernels/(?!kernels\.h).+",  # the compiler's own; private headers may hold it
}
SYSTEM = re.compile(
    r"(sys|netinet|arpa|linux|net)/\w+\.h"
    r"|(unistd|fcntl|signal|pthread|sched|poll|termios|netdb|dlfcn|cpuid|pwd|time|dirent|ifaddrs|langinfo|spawn)\.h"
    r"|[a-z_0-9]+"  # the standard library's own headers have no dot
)

MAX_FILE_LINES = 800
MAX_FUNCTION_LINES = 100
# Exceptions, each with its reason: "file" or "file:function's first words" -> reason.
SIZE_EXCEPTIONS: dict[str, str] = {}

FORBIDDEN_NAMES = {"utils", "util", "common", "helpers", "helper", "misc"}

# Spelled like ids of findings, and none: variables of the environment, and words of quantizers' files.
NO_FINDINGS = {"ALL_PROXY", "HTTPS_PROXY", "NO_PROXY", "NO_COLOR", "OPENAI_API_KEY", "MIXED_PRECISION", "PER_CHANNEL",
               "PER_TOKEN"}

# Spelled in pieces, so that this file does not break its own rule.
FORBIDDEN_TEXTS = ["/work" + "/", "/root" + "/", "/home" + "/", "../" + "shared", "pypi" + ".org",
                   "pythonhosted" + ".org", "deb.debian" + ".org", "npmjs" + ".", "crates" + ".io"]
# `run` and what it calls look for the full golden set in one place, and nothing else does.
TEXT_EXCEPTIONS = {("tools/run_tests", "../" + "shared")}

SKIPPED_FOLDERS = {".git", "build", "data", ".cache", "__pycache__", "seeds"}
CODE = {".h", ".cpp"}


def files(root: Path, suffixes: set[str] | None = None) -> list[Path]:
    found = []
    for path in sorted(root.rglob("*")):
        parts = path.relative_to(root).parts
        if SKIPPED_FOLDERS.intersection(parts) or not path.is_file() or path.is_symlink():
            continue
        if suffixes is None or path.suffix in suffixes:
            found.append(path)
    return found


def read(path: Path) -> str:
    return path.read_bytes().decode("utf-8", errors="replace")


def includes(path: Path) -> list[tuple[int, str, str]]:
    """(line, `"` or `<`, header) of every #include."""
    pattern = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
    found = []
    for number, line in enumerate(read(path).splitlines(), 1):
        if match := pattern.match(line):
            found.append((number, match[1], match[2]))
    return found


def opened_by_face(root: Path, room: str, header: str) -> bool:
    if header == f"{room}.h" or header in FACES.get(room, set()):
        return True
    face = root / "src" / room / f"{room}.h"
    return face.is_file() and re.search(rf"(?<!\w){re.escape(header)}", read(face)) is not None


def wrong_arrows(root: Path) -> list[str]:
    """Includes between rooms that the table does not allow, or that pass by a room's face."""
    wrong = []
    source = root / "src"
    for path in files(source, CODE):
        name = path.relative_to(source).as_posix()
        room = name.split("/")[0]
        for line, quote, header in includes(path):
            if quote != '"':
                continue
            place = f"src/{name}:{line}"
            target, _, rest = header.partition("/")
            if not (source / header).is_file():
                wrong.append(f'{place}: "{header}" is no file below src/; third-party headers take <>')
            elif target == room:
                continue
            elif room not in ARROWS:
                wrong.append(f"{place}: room {room} is not in the table")
            elif target != "base" and not (target == "report" and room not in GROUND) and target not in ARROWS[room]:
                wrong.append(f"{place}: room {room} may not include room {target}")
            elif target != "base" and not opened_by_face(root, target, rest):
                wrong.append(f"{place}: {header} is not a face of room {target} and src/{target}/{target}.h does "
                             "not name it")
    return wrong


def misplaced_libraries(root: Path) -> list[str]:
    """Third-party headers outside the files that hide their library."""
    wrong = []
    source = root / "src"
    for path in files(source, CODE):
        name = path.relative_to(source).as_posix()
        for line, quote, header in includes(path):
            if quote != "<":
                continue
            allowed = next((where for prefix, where in THIRD_PARTY.items() if header.startswith(prefix)), None)
            if allowed is not None:
                if not re.fullmatch(allowed, name):
                    wrong.append(f"src/{name}:{line}: <{header}> belongs in {allowed}")
            elif not SYSTEM.fullmatch(header):
                wrong.append(f"src/{name}:{line}: <{header}> is a library without a row in tests/house/rules.py")
    return wrong


def blanked(text: str) -> str:
    """`text` with comments, strings, characters and preprocessor lines made blank, line by line the same."""
    token = re.compile(
        r'R"(?P<mark>[^\s()\\]{0,16})\(.*?\)(?P=mark)"'
        r'|//[^\n]*|/\*.*?\*/'
        r'|"(?:\\.|[^"\\\n])*"|(?<![0-9a-fA-F])\'(?:\\.|[^\'\\\n])+\''
        r'|^[ \t]*#(?:[^\n\\]|\\.|\\\n)*',
        re.DOTALL | re.MULTILINE,
    )
    return token.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text)


def functions(text: str) -> list[tuple[int, int, str]]:
    """(first line, lines, opening words) of each function body that stands in a file, namespace or class."""
    found = []
    stack: list[str] = []  # kinds of the open blocks: scope, body, data
    opening, first_line, line = "", 0, 1
    for character in blanked(text):
        if character == "\n":
            line += 1
        if character == "{":
            words = opening.strip()
            bare = re.sub(r"\([^()]*\)", "", re.sub(r"\([^()]*\)", "", words))
            if re.search(r"(?:^|[\s;>])(?:namespace|class|struct|union|enum|extern)\b", bare) and ")" not in words:
                kind = "scope"
            elif "=" in bare.replace("==", "") and "operator" not in bare:
                kind = "data"
            else:
                kind = "body"
            if kind == "body" and not {"body", "data"}.intersection(stack):
                found.append((first_line or line, 0, words))
            stack.append(kind)
            opening, first_line = "", 0
        elif character == "}":
            if stack:
                kind = stack.pop()
                if kind == "body" and not {"body", "data"}.intersection(stack):
                    start, _, words = found[-1]
                    found[-1] = (start, line - start + 1, words)
            opening, first_line = "", 0
        elif character == ";" and opening.count("(") == opening.count(")"):
            opening, first_line = "", 0
        else:
            if not opening.strip() and not character.isspace():
                first_line = line
            opening += character
    return found


def too_long(root: Path) -> list[str]:
    """Files over 800 lines (generated tables apart) and functions over 100."""
    wrong = []
    for path in [p for folder in ("src", "tests", "fuzz", "perf") for p in files(root / folder, CODE)]:
        name = path.relative_to(root).as_posix()
        text = read(path)
        lines = text.count("\n")
        if lines > MAX_FILE_LINES and not name.endswith("_table.cpp") and name not in SIZE_EXCEPTIONS:
            wrong.append(f"{name}: {lines} lines; {MAX_FILE_LINES} is the limit, split it")
        for first, count, words in functions(text):
            title = " ".join(words.split())[:80]
            excused = any(f"{name}:{title}".startswith(key) for key in SIZE_EXCEPTIONS if ":" in key)
            if count > MAX_FUNCTION_LINES and not excused:
                wrong.append(f"{name}:{first}: {count} lines in `{title}`; {MAX_FUNCTION_LINES} is the limit")
    return wrong


def without_licence(root: Path) -> list[str]:
    """C++, Python and shell files whose first three lines lack the SPDX line."""
    wrong = []
    for path in files(root):
        head = read(path)[:400].split("\n")[:3]
        is_code = path.suffix in CODE | {".py"} or head[0].startswith("#!")
        if is_code and not any("SPDX-License-Identifier: Apache-2.0" in line for line in head):
            wrong.append(f"{path.relative_to(root).as_posix()}: no SPDX line in its first three lines")
    return wrong


def without_opening(root: Path) -> list[str]:
    """Headers that do not say, right after the licence, which question they answer."""
    wrong = []
    for path in files(root / "src", {".h"}):
        lines = read(path).split("\n")
        if len(lines) < 2 or not lines[1].startswith("// "):
            wrong.append(f"{path.relative_to(root).as_posix()}: opens without the lines that say what it answers")
    return wrong


def foreign_places(root: Path) -> list[str]:
    """Machine paths and package registries: what only holds where somebody happened to work."""
    wrong = []
    for path in files(root):
        name = path.relative_to(root).as_posix()
        for number, line in enumerate(read(path).split("\n"), 1):
            for text in FORBIDDEN_TEXTS:
                if text in line and (name, text) not in TEXT_EXCEPTIONS:
                    wrong.append(f"{name}:{number}: names `{text}`")
    return wrong


def undocumented_findings(root: Path) -> list[str]:
    """Ids of findings that no page of docs/ explains: who reads one has to be able to look it up."""
    pages = "\n".join(read(path) for path in files(root / "docs", {".md"}))
    known = set(re.findall(r"\b[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+\b", pages))
    wrong = []
    for path in files(root / "src", CODE):
        if path.stem.endswith("_table"):
            continue  # facts, not findings
        code = re.sub(r"//[^\n]*", "", read(path))
        for name in sorted(set(re.findall(r'"([A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+)"', code))):
            if name not in known and name not in NO_FINDINGS and not name.startswith("PLIMSOLL_"):
                wrong.append(f"{path.relative_to(root).as_posix()}: `{name}` stands in no page of docs/")
    return wrong


def vague_names(root: Path) -> list[str]:
    """Files and folders named after nothing: a thing that fits no room shows a missing room."""
    wrong = []
    for folder in ("src", "tests", "fuzz", "perf", "tools"):
        for path in files(root / folder):
            name = path.relative_to(root)
            words = {word for part in name.with_suffix("").parts for word in part.split("_")}
            if vague := words & FORBIDDEN_NAMES:
                wrong.append(f"{name.as_posix()}: `{vague.pop()}` names no room and no question")
    return wrong


def loose_todos(root: Path) -> list[str]:
    """TODO needs a number: TODO(#123)."""
    wrong = []
    for path in files(root, CODE):
        for number, line in enumerate(read(path).split("\n"), 1):
            if re.search(r"//.*\b(TODO|FIXME|XXX)\b", line) and not re.search(r"TODO\(#\d+\)", line):
                wrong.append(f"{path.relative_to(root).as_posix()}:{number}: TODO without a number")
    return wrong


def unlisted_pins(root: Path) -> list[str]:
    """Every pip line of tools/packages.txt stands in tests/e2e/requirements.txt with the same version."""
    pins = set(read(root / "tests/e2e/requirements.txt").split())
    listed = re.findall(r"^pip (\S+)", read(root / "tools/packages.txt"), re.MULTILINE)
    return [f"tools/packages.txt: {pin} is not in tests/e2e/requirements.txt" for pin in listed if pin not in pins]


MAX_DATA_BYTES = 15_000_000


def heavy_or_orphaned_data(root: Path) -> list[str]:
    """data/ stays under 15 MB, and every page of data/PROVENANCE/ is in the index data/PROVENANCE.md."""
    total = sum(path.stat().st_size for path in (root / "data").rglob("*") if path.is_file())
    wrong = [f"data: {total} bytes; {MAX_DATA_BYTES} is the limit"] if total > MAX_DATA_BYTES else []
    index = read(root / "data/PROVENANCE.md")
    for page in sorted((root / "data/PROVENANCE").glob("*.md")):
        if f"PROVENANCE/{page.name}" not in index:
            wrong.append(f"data/PROVENANCE.md: does not list PROVENANCE/{page.name}")
    return wrong
