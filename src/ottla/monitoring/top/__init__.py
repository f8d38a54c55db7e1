"""A cluster at a glance: who does how much, who is behind, what takes long."""
