"""Tools that look at a cluster and change it: topics, settings, groups, partitions, transactions."""
