"""What stops a query, in words for the person who runs it.

OttlaError
  InvalidOption   an option that is unknown, malformed, or contradicts another
  DataLoss        records that the query should have read are gone; `failOnDataLoss=false` goes on without them
  NoSuchTopic     a topic to write to is not there
  IndeterminateTransaction
                  a task ran twice inside one transaction: the batch is aborted and written again
  LostTransaction what a batch wrote is gone although the batch counts as written; the message says what to do
"""

from ottla.model.errors import OttlaError


class InvalidOption(OttlaError):
    """The options cannot work as they are; the message says which, and what to write."""


class DataLoss(OttlaError):
    """Offsets that the query counts on are not there any more."""


class NoSuchTopic(OttlaError):
    """Topics are created by people, or by brokers that are told to."""


class IndeterminateTransaction(OttlaError):
    """Nobody can tell which records of the first run are in the log."""


class LostTransaction(OttlaError):
    """A decided transaction was aborted by the broker before it could be ended."""
