"""A small async client: connections, routing to leaders and coordinators, admin calls. Works with any Kafka."""
