"""A console for a browser: what a cluster, its groups, schemas and pipelines do, and what can be done to them.

It knows clusters over the wire alone, Ottla's or Apache Kafka's, registries by their REST API and pipelines by their
status. `routes` is the one table of what is served; each thing in it is a page and a JSON answer of the same function.
"""
