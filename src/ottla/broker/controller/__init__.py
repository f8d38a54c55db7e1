"""Changes of the cluster's metadata: what is allowed (pure), what it writes (pure), and doing it."""
