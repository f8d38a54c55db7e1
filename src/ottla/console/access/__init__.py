"""Who comes in and what they may do: sign-in, sessions, roles, masks, protection of changes, the audit log."""
