"""Which kernel to use: the compiled one where it was built, its twin in Python elsewhere."""

import functools
import os

from ottla.model.errors import OttlaError
from ottla.spark.kernel.interface import Kernel
from ottla.spark.kernel.native import NativeKernel
from ottla.spark.kernel.twin import TwinKernel

VARIABLE = "OTTLA_KERNEL"


class NoSuchKernel(OttlaError):
    """The kernel that was asked for cannot be had."""


@functools.cache
def chosen_kernel() -> Kernel:
    return choose(os.environ.get(VARIABLE, ""))


def choose(wanted: str) -> Kernel:
    """`c` and `python` force one; nothing takes the compiled one if there is one."""
    if wanted not in {"", "c", "python"}:
        raise NoSuchKernel(f"{VARIABLE} is {wanted!r}: it must be c or python, or not set")
    if wanted == "python":
        return TwinKernel()
    try:
        return NativeKernel()
    except OSError as error:
        if wanted == "c":
            raise NoSuchKernel(
                f"{VARIABLE} asks for the compiled kernel, and there is none here ({error}). "
                "Install a C compiler and ottla again (in a checkout: make setup), or unset it."
            ) from None
        return TwinKernel()
