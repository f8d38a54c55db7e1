"""Tools that write and read records, and measure that."""
