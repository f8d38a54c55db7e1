"""Records end to end, as Xinfra Monitor does it: written to and read from a partition that each broker leads."""
