"""What the handler of Fetch is made of: sessions, the choice of a replica, and the answer packed by hand."""
