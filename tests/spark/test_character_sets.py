"""Spark writes and reads UTF-8, whatever the locale of the machine: Java before 18 would take the locale's."""

import os
import subprocess
import sys

_DEFAULT = """
from ottla.spark.session import build_session
spark = build_session("x", "local[1]", short_lived=True)
print(spark._jvm.java.nio.charset.Charset.defaultCharset().name())
spark.stop()
"""
_BYTES_OF_CSV = """
from ottla.spark.formats.api import from_format
from ottla.spark.session import build_session
ascii = {"spark.driver.extraJavaOptions": "-Dfile.encoding=US-ASCII"}
spark = build_session("x", "local[1]", ascii, short_lived=True)
frame = spark.createDataFrame([(bytearray("1,\\u017e\\u00e9".encode()),)], "value BINARY")
[row] = from_format(frame, "csv", "id INT, raw BINARY").good.collect()
print(bytes(row.raw) == "\\u017e\\u00e9".encode())
spark.stop()
"""


def said_by(program: str, **environment: str) -> str:
    ran = subprocess.run(
        [sys.executable, "-c", program], env={**os.environ, **environment}, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout.strip()


def test_java_takes_utf_8_where_the_locale_is_not_installed() -> None:
    assert said_by(_DEFAULT, LC_ALL="xx_XX.UTF-8") == "UTF-8"


def test_bytes_of_csv_are_utf_8_even_where_java_was_told_otherwise() -> None:
    assert said_by(_BYTES_OF_CSV) == "True"
