"""A cluster's metadata in ZooKeeper: the seam to it (client), the library behind the seam (kazoo_client), the store."""
