"""Options of Spark's JVM by what a session is for. What the user says comes after them, and wins."""

import re

# Started with these and with its classes in an archive, a session costs a fifth of the processor time (measured).
# With the quick compiler alone Java has room for 48 MB of code by default, which Spark's generated classes outgrow.
QUICK_COMPILER = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=256m"
SMALL_COLLECTOR = "-XX:+UseSerialGC"
SHORT_LIVED = f"{QUICK_COMPILER} {SMALL_COLLECTOR} -Xshare:auto"

_COLLECTOR = re.compile(r"-XX:\+Use\w*GC\b")


def java_options(always: str, archive: str, users: str, *, short_lived: bool) -> str:
    """All but the user's own in one text. Java does not start with two collectors, so one that the user names is it."""
    ours = [always, archive]
    if short_lived:
        ours.append(QUICK_COMPILER)
        if not _COLLECTOR.search(users):
            ours.append(SMALL_COLLECTOR)
    return " ".join(text for text in ours if text)
