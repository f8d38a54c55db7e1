"""Commands that watch a cluster over the wire."""
