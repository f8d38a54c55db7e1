"""Which kernel to use: the compiled one where it was built, its twin in Python elsewhere."""

import functools

from ottla.spark.kernel.interface import Kernel
from ottla.spark.kernel.twin import TwinKernel


@functools.cache
def kernel() -> Kernel:
    return TwinKernel()
