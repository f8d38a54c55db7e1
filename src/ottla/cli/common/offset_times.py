"""What `--time` takes where a tool asks for offsets."""

from ottla.cli.common.output import CommandError
from ottla.client import offsets

TIMES = {
    "latest": offsets.LATEST,
    "earliest": offsets.EARLIEST,
    "max-timestamp": offsets.MAX_TIMESTAMP,
    "earliest-local": offsets.EARLIEST_LOCAL,
    "latest-tiered": offsets.LATEST_TIERED,
    "earliest-pending-upload": offsets.EARLIEST_PENDING_UPLOAD,
}


def parse_time(text: str) -> int:
    if text in TIMES:
        return TIMES[text]
    try:
        return int(text)
    except ValueError:
        names = ", ".join(f"{name} or {number}" for name, number in TIMES.items())
        raise CommandError(f"--time wants a timestamp in ms, or {names}; not `{text}`") from None
