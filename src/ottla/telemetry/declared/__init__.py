"""Metrics by what they are about. `ottla.telemetry.catalogue` has them all."""
