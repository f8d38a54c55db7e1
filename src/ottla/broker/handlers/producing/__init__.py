"""What the handler of Produce is made of: checks of transactions, waiting for replicas, the answer packed by hand."""
