"""The words everything else is written in. Imports nothing of Ottla's, does no I/O."""
