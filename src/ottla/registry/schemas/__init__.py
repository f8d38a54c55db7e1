"""The kinds of schemas: how each is read, written in one form, and normalised."""
