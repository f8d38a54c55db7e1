"""kafka-python is imported before pytest turns its warnings into errors."""

import warnings

with warnings.catch_warnings():
    # kafka-python reads its schemas by a function that Python 3.11 has deprecated; its import is the only place.
    warnings.simplefilter("ignore", DeprecationWarning)
    import kafka  # noqa: F401
