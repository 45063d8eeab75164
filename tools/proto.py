"""Regenerates the *_pb2.py and .pyi beside our .proto files with an old compiler; tries them on old and new runtimes.

protoc 4.25 (grpcio-tools 1.62; wheels for Python 3.11 and 3.12) is the newest whose output asks for no minimum runtime
version, so that one file serves protobuf 6, which OR-tools needs, and protobuf 7.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PROTOS = ("engine/hlo/hlo.proto", "engine/profile/xspace.proto")
COMPILER = "grpcio-tools>=1.62,<1.63"
RUNTIMES = ("protobuf>=6.30,<7", "protobuf>=7,<8")
TRY = """
import sys
sys.path[:0] = ["engine/hlo", "engine/profile"]
import google.protobuf, hlo_pb2, xspace_pb2
for kind in (hlo_pb2.HloModuleProto, xspace_pb2.XPlane):
    assert kind.FromString(kind(name="m").SerializeToString()).name == "m"
print("the generated files run on protobuf", google.protobuf.__version__)
"""


def main() -> int:
    """Exit status 0 when the files were written and run on every supported runtime."""
    with tempfile.TemporaryDirectory(prefix="lapstrake-proto-") as folder:
        compiler = environment(Path(folder) / "compiler", COMPILER, "setuptools<81")
        run(compiler, "-m", "grpc_tools.protoc", "-I.", "--python_out=.", "--pyi_out=.", *PROTOS)
        for number, runtime in enumerate(RUNTIMES):
            python = environment(Path(folder) / f"runtime{number}", runtime)
            run(python, "-W", "error", "-c", TRY)
    return 0


def environment(folder: Path, *packages: str) -> Path:
    """A new virtual environment with `packages`; returns its Python."""
    venv.create(folder, with_pip=True)
    python = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    run(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *packages)
    return python


def run(python: Path, *arguments: str) -> None:
    """Run `python` in the project's folder; raises CalledProcessError when it fails."""
    subprocess.run([str(python), *arguments], cwd=ROOT, check=True)


if __name__ == "__main__":
    sys.exit(main())
