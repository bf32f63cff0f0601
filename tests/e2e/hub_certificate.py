# SPDX-License-Identifier: Apache-2.0
"""A certificate authority of our own and a server's certificate that it signed, for TLS on the loopback."""
import subprocess
from pathlib import Path


def make(folder: Path, names: str = "IP:127.0.0.1") -> tuple[str, tuple[str, str]]:
    """Path of the authority's certificate, and (certificate, key) of a server of these names."""
    authority, request, certificate, key = (str(folder / name) for name in ("ca.pem", "leaf.csr", "leaf.pem", "leaf.key"))
    extension = folder / "leaf.cnf"
    extension.write_text(f"subjectAltName={names}\nbasicConstraints=CA:FALSE\nextendedKeyUsage=serverAuth\n")
    elliptic = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-noenc"]
    for command in (
        ["req", "-x509", *elliptic, "-keyout", str(folder / "ca.key"), "-out", authority, "-days", "2",
         "-subj", "/CN=plimsoll test authority", "-addext", "keyUsage=critical,keyCertSign,cRLSign"],
        ["req", *elliptic, "-keyout", key, "-out", request, "-subj", "/CN=hub stand-in"],
        ["x509", "-req", "-in", request, "-CA", authority, "-CAkey", str(folder / "ca.key"), "-CAcreateserial",
         "-out", certificate, "-days", "2", "-extfile", str(extension)],
    ):
        subprocess.run(["openssl", *command], check=True, capture_output=True, timeout=30)
    return authority, (certificate, key)
