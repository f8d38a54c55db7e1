"""Groups of the consumer protocol (KIP-848): the broker assigns, members follow by heartbeats. Pure like all groups."""
