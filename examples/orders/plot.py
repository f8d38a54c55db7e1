"""Throughput and lag over time: as text for the terminal, and as a picture where matplotlib is installed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

BLOCKS = " ▁▂▃▄▅▆▇█"


@dataclass(frozen=True, slots=True)
class Sample:
    """What was to be seen at one moment."""

    seconds: float
    produced: int
    """Records in the topic so far."""
    processed: int
    """Of these, how many the pipeline's group has behind it."""

    @property
    def lag(self) -> int:
        return self.produced - self.processed


def rates(samples: Sequence[Sample], columns: int) -> tuple[list[float], list[float]]:
    """Records per second processed, and the lag, in equal slices of the time from the first sample to the last."""
    begin, end = samples[0].seconds, samples[-1].seconds
    width = max((end - begin) / columns, 1e-9)
    throughput, lag = [], []
    position, before = 0, samples[0]
    for column in range(columns):
        until = begin + (column + 1) * width
        while position + 1 < len(samples) and samples[position + 1].seconds <= until:
            position += 1
        now = samples[position]
        throughput.append((now.processed - before.processed) / width)
        lag.append(float(now.lag))
        before = now
    return throughput, lag


def bars(values: Sequence[float], height: int) -> list[str]:
    """Lines of text, the highest value filling `height` of them."""
    top = max(values, default=0.0) or 1.0
    eighths = [round(max(value, 0.0) / top * height * 8) for value in values]
    return [
        "".join(BLOCKS[min(max(count - 8 * (height - 1 - line), 0), 8)] for count in eighths) for line in range(height)
    ]


def as_text(samples: Sequence[Sample], marks: Mapping[float, str], *, columns: int = 64, height: int = 5) -> str:
    """Two charts above one time axis; `marks` puts a sign under a moment."""
    if len(samples) < 2:
        return "nothing to plot: the run was too short"
    throughput, lag = rates(samples, columns)
    begin, end = samples[0].seconds, samples[-1].seconds
    lines: list[str] = []
    for title, values in (("records/s", throughput), ("lag", lag)):
        label_lines = [f"{max(values):,.0f}", *[""] * (height - 2), "0"]
        lines.append(f"{title:>10}")
        lines += [f"{label:>10} │{line}" for label, line in zip(label_lines, bars(values, height), strict=True)]
    axis = [" "] * columns
    for moment, sign in marks.items():
        axis[min(columns - 1, max(0, int((moment - begin) / (end - begin) * columns)))] = sign
    lines.append(" " * 11 + "└" + "─" * columns)
    lines.append(" " * 12 + "".join(axis))
    lines.append(" " * 12 + f"{begin:.0f} s".ljust(columns - 6) + f"{end:.0f} s".rjust(6))
    return "\n".join(lines)


def as_picture(samples: Sequence[Sample], marks: Mapping[float, str], path: Path) -> bool:
    """Write a PNG; False where matplotlib is not installed."""
    try:
        import matplotlib as mpl  # noqa: PLC0415 - optional
    except ImportError:
        return False
    mpl.use("Agg")
    from matplotlib import pyplot  # noqa: PLC0415 - after the choice of its backend

    slices = min(60, max(2, len(samples) // 2))
    throughput, _ = rates(samples, slices)
    begin, end = samples[0].seconds, samples[-1].seconds
    middles = [begin + (number + 0.5) * (end - begin) / slices for number in range(slices)]
    figure, (above, below) = pyplot.subplots(2, 1, sharex=True, figsize=(9, 5))
    above.bar(middles, throughput, width=(end - begin) / slices, color="#2a6f97")
    above.set_ylabel("records/s processed")
    below.fill_between([s.seconds for s in samples], [s.lag for s in samples], color="#e07a5f")
    below.set_ylabel("lag, records")
    below.set_xlabel("seconds")
    for moment, sign in marks.items():
        for axes in (above, below):
            axes.axvline(moment, color="black", linestyle=":")
        above.annotate(sign, (moment, above.get_ylim()[1]), ha="center", va="bottom")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=120)
    pyplot.close(figure)
    return True
