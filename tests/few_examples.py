"""How properties are tried where each example is a job of Spark."""

from hypothesis import HealthCheck, Phase, settings
from tests.chance import SOAK

# A Spark job costs more than hypothesis' own work for hundreds of rows: examples are few and long, and not shrunk.
few_long_examples = settings(
    max_examples=50 if SOAK else 2,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    phases=[Phase.explicit, Phase.generate],
)
