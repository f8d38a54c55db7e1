"""Which known name somebody may have meant: only a slip of the pen is guessed at.

Names of settings share most of their letters, so the nearest one is often another setting altogether: `log.segment.ms`
is nearest to `log.segment.bytes`. Therefore each word of a name has to be nearly right.
"""

import difflib
import re
from collections.abc import Collection

WORD_LIKENESS_MIN = 0.6
_BETWEEN_WORDS = re.compile(r"[._\-\s]+")


def nearest(name: str, known: Collection[str]) -> str | None:
    """The known name whose words are these, mistyped or in another order; None where no word would fit."""
    words = _words(name)
    same_words = sorted(words)
    for candidate in known:
        if sorted(_words(candidate)) == same_words:
            return candidate
    alike = {candidate: _likeness(words, _words(candidate)) for candidate in known}
    best = max(alike, key=lambda candidate: alike[candidate], default=None)
    return best if best is not None and alike[best] > 0 else None


def _words(name: str) -> list[str]:
    return [word for word in _BETWEEN_WORDS.split(name.strip().lower()) if word]


def _likeness(words: list[str], others: list[str]) -> float:
    """Between 0 and 1; 0 as soon as one word is quite another."""
    if len(words) != len(others):
        return 0.0
    ratios = [difflib.SequenceMatcher(None, one, other).ratio() for one, other in zip(words, others, strict=True)]
    return sum(ratios) / len(ratios) if min(ratios, default=0.0) >= WORD_LIKENESS_MIN else 0.0
