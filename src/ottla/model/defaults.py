"""Where a broker is if nobody says otherwise."""

BOOTSTRAP_VARIABLE = "OTTLA_BOOTSTRAP"
"""The environment variable that says otherwise."""
DEFAULT_PORT = 9092
DEFAULT_BOOTSTRAP = f"127.0.0.1:{DEFAULT_PORT}"

REGISTRY_PORT = 8081
"""Where clients look for a schema registry."""
CONSOLE_PORT = 8090
"""Where the console is, for browsers."""
REGISTRY_VARIABLE = "OTTLA_REGISTRY"
DEFAULT_REGISTRY = f"http://127.0.0.1:{REGISTRY_PORT}"
