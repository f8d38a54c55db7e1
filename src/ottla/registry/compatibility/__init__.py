"""Whether a new version may follow the old ones: rules for each kind of schema, and levels that say which to ask."""
