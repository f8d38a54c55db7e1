"""The one table of settings: names, types, defaults, bounds and a sentence each."""
