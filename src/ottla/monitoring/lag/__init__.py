"""Consumers' lag, judged as Burrow judges it: rules over a window of commits instead of thresholds."""
