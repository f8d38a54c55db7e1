"""What runs a plan: queries, their batches, dead letters, restarts, progress and status."""
