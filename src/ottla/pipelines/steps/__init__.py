"""Steps: one small module per thing that can happen to rows. `base` says what one looks like."""
