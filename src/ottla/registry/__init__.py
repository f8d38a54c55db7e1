"""The schema registry: the REST API that Kafka's serializers know, its state in the topic `_schemas`, by wire only.

`schemas` reads the three kinds of schemas, `compatibility` holds the rules; `state` replays records and `decisions`
makes them, both without I/O; `store`, `election` and `service` do the I/O; `rest` answers.
"""
