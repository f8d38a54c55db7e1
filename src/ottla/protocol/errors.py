"""What can be wrong with bytes.

OttlaError
  MalformedMessage     a request, response or stored document that does not parse
    CorruptBatch       a record batch that is cut short, of another format, or fails its CRC
"""

from ottla.model.errors import OttlaError


class MalformedMessage(OttlaError):
    """Bytes that do not follow the format they claim."""


class CorruptBatch(MalformedMessage):
    """A record batch that cannot be trusted."""
