"""What a broker counts: metrics declared once, plain integers on the hot path, read when somebody asks."""
