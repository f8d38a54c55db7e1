"""Whether bytes of many JSON records can hold one whose number a path finds, seen without reading any of them.

A pattern may find too much, never too little: it is looked for in whole batches, and those that have it are read. Pure.
"""

import re

from ottla.console.search.query import Op, Term

_AS_IT_IS = re.compile(r"[A-Za-z0-9 _.,:;@#$%()+*-]+")
"""Names that stand in JSON as they are, unless they are written with \\u, which whoever asks has to look for."""
_INTEGER = re.compile(r"-?(0|[1-9][0-9]{0,14})")
"""Those that floating point has exactly."""
_NEARLY = rb"-?[0-9]+\.[0-9]{9,}"
"""A fraction so long that it may be read as the whole number beside it."""
_ODD = rb'"|-?[0-9.]+[eE]'
"""Numbers as texts, and those with an exponent: too many ways to write one."""


def number_pattern(term: Term) -> re.Pattern[bytes] | None:
    """What the bytes of a record contain that the term matches; None: nothing can be said."""
    if term.negated or term.literal or not term.path or not _INTEGER.fullmatch(term.text):
        return None
    name = term.path[-1]
    if not isinstance(name, str) or not _AS_IT_IS.fullmatch(name):
        return None
    values = _values(term.op, int(term.text))
    if values is None:
        return None
    return re.compile(b'"' + re.escape(name.encode()) + rb'"\s*:\s*(?:' + values + b"|" + _ODD + b")")


def _values(op: Op, number: int) -> bytes | None:
    digits = len(str(abs(number)))
    many = b"[0-9]{%d}" % digits
    match op:
        case Op.EQUALS:
            sign = b"-?" if number == 0 else b"-" if number < 0 else b""
            exactly = b"%s%d(?:\\.0*)?(?![0-9.])" % (sign, abs(number))
            return exactly + b"|" + _NEARLY
        case Op.GREATER | Op.AT_LEAST if number > 0:
            return many + b"|" + _NEARLY  # no fewer digits than the number has
        case Op.LESS | Op.AT_MOST if number < 0:
            return b"-" + many + b"|" + _NEARLY
    return None
