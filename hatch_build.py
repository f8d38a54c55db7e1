"""Builds the kernel of the Spark data source where there is a C compiler; Ottla also works without it, slower."""

import os
import shutil
import subprocess
import sysconfig
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

_KERNEL = Path("src/ottla/spark/kernel")
_FLAGS = ("-O3", "-std=c11", "-fvisibility=hidden", "-shared", "-fPIC")


class KernelBuildHook(BuildHookInterface[Any]):
    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile in place, for an editable install too; a wheel with the library in it is for this platform only."""
        source, library = Path(self.root, _KERNEL, "kernel.c"), Path(self.root, _KERNEL, "_kernel.so")
        library.unlink(missing_ok=True)
        compiler = shutil.which(os.environ.get("CC", "cc"))
        if compiler is None:
            self.app.display_warning(
                "no C compiler (cc): reading and writing from Spark will use the slower Python kernel"
            )
            return
        built = subprocess.run(
            [compiler, *_FLAGS, "-o", str(library), str(source)], capture_output=True, text=True, check=False
        )
        if built.returncode:
            self.app.display_warning(
                f"{compiler} failed, so the slower Python kernel will be used: {built.stderr.strip()}"
            )
            return
        platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
        build_data["tag"] = f"py3-none-{platform}"
        build_data["pure_python"] = False
        build_data["artifacts"].append(f"/{_KERNEL}/_kernel.so")
