"""Monitoring of any Kafka over the wire: how far groups are behind, whether records get through, what to look at."""
