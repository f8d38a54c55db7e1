"""What is left to chance, and where: `make test` rolls the same dice every time, `make soak` new ones and more of them.

Whoever runs the tests wants to know whether this checkout works; what one seed of hundreds finds is looked for by those
who have time for it. `OTTLA_SEED` repeats a seed that a failure has named.
"""

import os
import time

SOAK = os.environ.get("OTTLA_SOAK") == "1"
SEED = int(os.environ.get("OTTLA_SEED", time.time_ns() % 1_000_000_007 if SOAK else 20_261_119))
