"""Builds the kernel of the Spark data source where there is a C compiler; Ottla also works without it, slower.

A wheel with the compiled kernel is for one processor and for every Linux whose glibc is new enough, and its name says
so (PEP 600): what the library asks of glibc is read from the library itself. OTTLA_PURE_WHEEL=1 leaves the kernel out.
"""

import os
import re
import shutil
import subprocess
import sysconfig
from pathlib import Path
from typing import Any

from elftools.elf.dynamic import DynamicSection
from elftools.elf.elffile import ELFFile
from elftools.elf.gnuversions import GNUVerNeedSection
from hatchling.builders.hooks.plugin.interface import BuildHookInterface

_KERNEL = Path("src/ottla/spark/kernel")
_FLAGS = ("-O3", "-std=c11", "-fvisibility=hidden", "-shared", "-fPIC")
PURE = "OTTLA_PURE_WHEEL"
OLDEST_GLIBC = (2, 17)
"""Of manylinux2014: what is older has no Python 3.11 to install into, and indexes know no tags for some processors."""


class KernelBuildHook(BuildHookInterface[Any]):
    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile in place, for an editable install too."""
        library = Path(self.root, _KERNEL, "_kernel.so")
        sources = sorted(str(path) for path in Path(self.root, _KERNEL).glob("*.c"))
        library.unlink(missing_ok=True)
        if os.environ.get(PURE, "0") not in ("", "0"):
            return
        compiler = shutil.which(os.environ.get("CC", "cc"))
        if compiler is None:
            self.app.display_warning(
                "no C compiler (cc): reading and writing from Spark will use the slower Python kernel"
            )
            return
        built = subprocess.run(
            [compiler, *_FLAGS, "-o", str(library), *sources], capture_output=True, text=True, check=False
        )
        if built.returncode:
            self.app.display_warning(
                f"{compiler} failed, so the slower Python kernel will be used: {built.stderr.strip()}"
            )
            return
        build_data["tag"] = f"py3-none-{platform_tag(library)}"
        build_data["pure_python"] = False
        build_data["artifacts"].append(f"/{_KERNEL}/_kernel.so")


def platform_tag(library: Path) -> str:
    """`manylinux_2_17_x86_64`, or where the library needs more than glibc, that of this machine: no index takes it."""
    here = sysconfig.get_platform().replace("-", "_").replace(".", "_")
    glibc = needed_glibc(library) if here.startswith("linux_") else None
    if glibc is None:
        return here
    major, minor = max(glibc, OLDEST_GLIBC)
    return f"manylinux_{major}_{minor}_{here.removeprefix('linux_')}"


def needed_glibc(library: Path) -> tuple[int, int] | None:
    """The newest version of a symbol that it takes from glibc; None if it needs another library, or another libc."""
    with library.open("rb") as file:
        elf = ELFFile(file)
        sections = list(elf.iter_sections())
        needed = {
            tag.needed
            for section in sections
            if isinstance(section, DynamicSection)
            for tag in section.iter_tags("DT_NEEDED")
        }
        versions = [
            version.name
            for section in sections
            if isinstance(section, GNUVerNeedSection)
            for _, entries in section.iter_versions()
            for version in entries
        ]
    known = [re.fullmatch(r"GLIBC_(\d+)\.(\d+)(?:\.\d+)?", version) for version in versions]
    if needed != {"libc.so.6"} or not known or None in known:
        return None
    return max((int(match[1]), int(match[2])) for match in known if match)
