"""Small charts as SVG, drawn here: no script has to run for them. Pure."""

from collections.abc import Sequence

from markupsafe import Markup

WIDTH = 120
HEIGHT = 28
POINTS_MIN = 2


def sparkline(values: Sequence[float], label: str, *, width: int = WIDTH, height: int = HEIGHT) -> Markup:
    """A line from the oldest value to the newest; `label` is what is read aloud."""
    if len(values) < POINTS_MIN:
        return Markup('<span class="faint">…</span>')
    most = max(values) or 1
    step = (width - 4) / (len(values) - 1)
    points = [(2 + at * step, height - 3 - (value / most) * (height - 6)) for at, value in enumerate(values)]
    line = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    area = f"2,{height - 1} {line} {width - 2},{height - 1}"
    return Markup(
        '<svg class="spark" role="img" aria-label="{}" viewBox="0 0 {} {}" width="{}" height="{}">'
        '<polygon class="area" points="{}"/><polyline points="{}"/></svg>'
    ).format(label, width, height, width, height, area, line)


def bar(value: float, most: float, label: str, *, kind: str = "", width: int = 100) -> Markup:
    """How much of the most: for skew, shares and sizes side by side."""
    share = 0.0 if most <= 0 else min(1.0, max(0.0, value / most))
    return Markup(
        '<svg class="bar {}" role="img" aria-label="{}" viewBox="0 0 {} 10" width="{}" height="10">'
        '<rect class="back" width="{}" height="10" rx="2"/><rect class="fill" width="{}" height="10" rx="2"/></svg>'
    ).format(kind, label, width, width, width, f"{share * width:.1f}")
