"""What a broker shows of itself: figures that are read from its state, and the HTTP listener that serves them."""
