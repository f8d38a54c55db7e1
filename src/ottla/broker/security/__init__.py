"""Who may come in (TLS, SASL) and what they may do (access control lists), and the record of both."""
