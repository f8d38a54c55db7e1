"""Files on a disk: whole ones and one that grows as sources, folders and growing files as a sink."""
