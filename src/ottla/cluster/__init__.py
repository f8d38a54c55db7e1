"""What the cluster is made of: an immutable image, the documents it is kept in, and the stores that keep them."""
