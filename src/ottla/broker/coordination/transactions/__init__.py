"""Transactions, pure: the state of each transactional id and what requests may make of it."""
