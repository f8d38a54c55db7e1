"""The Spark data source: read and write topics from Spark with no jar."""
