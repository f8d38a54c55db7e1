"""Spark's own connector to Kafka, fetched from a Maven repository into .peer/."""

from pathlib import Path

from compat.peer.kafka import PEER, fetch_jars

POM = Path(__file__).with_name("spark_pom.xml")


def jars() -> str:
    """The connector and what it needs, as Spark's setting `spark.jars` wants them."""
    folder = fetch_jars(POM, PEER / "spark-connector", "Spark's connector to Kafka")
    return ",".join(sorted(str(path) for path in folder.glob("*.jar")))
