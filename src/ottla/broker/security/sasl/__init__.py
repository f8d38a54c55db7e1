"""SASL from the server's side. Each mechanism is a pure machine: what the client sent in, what it is told out."""
