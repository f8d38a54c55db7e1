"""Access control lists: an index of all rules, and the authorizer that asks it."""
