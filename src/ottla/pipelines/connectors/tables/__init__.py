"""Tables of databases: what sources that follow an increasing column have in common."""
