"""What stops a query, in words for the person who runs it.

OttlaError
  InvalidOption   an option that is unknown, malformed, or contradicts another
  DataLoss        records that the query should have read are gone; `failOnDataLoss=false` goes on without them
"""

from ottla.model.errors import OttlaError


class InvalidOption(OttlaError):
    """The options cannot work as they are; the message says which, and what to write."""


class DataLoss(OttlaError):
    """Offsets that the query counts on are not there any more."""
