# SPDX-License-Identifier: Apache-2.0
"""Puts the peers into one folder, each once, from the registries that pip is configured with; versions stand in tools/packages.txt.

    tools/            a virtual environment: cmake, ninja, numpy, gguf
    llama-<set>/bin   llama-server, llama-bench and llama-quantize, built from the sources in llama-cpp-python's source archive for one
                      instruction set of the kernels; a source archive of its own llama.cpp has in no registry
    openvino/         a virtual environment: OpenVINO GenAI
"""
import os
import subprocess
import sys
import tarfile
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tools"))
import registries  # noqa: E402 - found only now

JOBS = 2
TOOLS = ("cmake", "ninja", "numpy", "gguf", "scikit-build-core")
LLAMA = ("sdist", "llama-cpp-python")
OPENVINO = ("openvino-genai", "numpy")
# What of an instruction set llama.cpp is told beside AVX2, FMA, F16C and BMI2, its defaults.
LLAMA_SETS = {
    "avx2": (),
    "avx512": ("AVX512",),
    "avx512_vnni": ("AVX512", "AVX512_VBMI", "AVX512_VNNI"),
    "avx512_bf16": ("AVX512", "AVX512_VBMI", "AVX512_VNNI", "AVX512_BF16"),
}


def pins(names):
    return [f"{name}=={registries.pinned('peer-engine', name)}" for name in names]


def environment(folder, packages):
    """A virtual environment; complete only when all packages are in."""
    if (folder / "bin/python").exists():
        return
    part = folder.with_name(f"{folder.name}.part")
    venv.create(part, with_pip=True, clear=True)
    subprocess.run([str(part / "bin/python"), "-m", "pip", "-q", "--disable-pip-version-check", "install", *packages], check=True,
                   stdout=sys.stderr)
    part.rename(folder)


def llama_sources(peers):
    folder = peers / "llama-sources"
    if not folder.exists():
        with tempfile.TemporaryDirectory(dir=peers) as scratch:
            subprocess.run([str(peers / "tools/bin/python"), "-m", "pip", "-q", "--disable-pip-version-check", "download", "--no-deps",
                            "--no-binary", ":all:", "--no-build-isolation", "-d", scratch, f"{LLAMA[1]}=={registries.pinned(*LLAMA)}"],
                           check=True, stdout=sys.stderr)
            with tarfile.open(next(Path(scratch).glob("*.tar.gz"))) as archive:
                archive.extractall(scratch, filter="data")
            next(Path(scratch).glob("*/vendor/llama.cpp")).rename(folder)
    return folder


def llama(peers, name):
    """At low priority: who builds for a quarter of an hour should not stand in anybody's way."""
    folder = peers / f"llama-{name}"
    programs = ("llama-server", "llama-quantize", "llama-bench")
    if all((folder / "bin" / program).exists() for program in programs):
        return
    tools = peers / "tools/bin"
    flags = [f"-DGGML_{word}=ON" for word in LLAMA_SETS[name]]
    subprocess.run([str(tools / "python"), "-m", "cmake", "-S", str(llama_sources(peers)), "-B", str(folder), "-G", "Ninja",
                    f"-DCMAKE_MAKE_PROGRAM={tools / 'ninja'}", "-DCMAKE_BUILD_TYPE=Release", "-DGGML_NATIVE=OFF", "-DLLAMA_OPENSSL=OFF",
                    "-DLLAMA_BUILD_TESTS=OFF", "-DLLAMA_BUILD_EXAMPLES=OFF", "-DLLAMA_USE_PREBUILT_UI=OFF", "-DGGML_CCACHE=OFF", *flags],
                   check=True, stdout=sys.stderr)
    subprocess.run(["nice", "-n", "10", str(tools / "ninja"), "-C", str(folder), f"-j{JOBS}", *programs], check=True, stdout=sys.stderr,
                   env={**os.environ, "PATH": f"{tools}:{os.environ['PATH']}"})


def all_of(peers, engines, sets, say):
    """Installs what is missing for the engines, llama.cpp for each instruction set of `sets`."""
    peers.mkdir(parents=True, exist_ok=True)
    say(f"peers in {peers}; what is missing is installed, which takes up to half an hour once")
    environment(peers / "tools", pins(TOOLS))
    for name in sets:  # its quantizer makes the models, so that it is had in any case
        llama(peers, name)
    if "openvino" in engines:
        environment(peers / "openvino", pins(OPENVINO))
    return {"llama.cpp": f"of llama-cpp-python {registries.pinned(*LLAMA)}",
            "OpenVINO GenAI": registries.pinned("peer-engine", "openvino-genai")}
