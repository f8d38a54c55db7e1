"""Pages from templates. Everything that comes from a cluster is text of strangers, and is escaped without exception."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

import jinja2

from ottla.console import charts, wording


class Pages:
    def __init__(self, folder: Path) -> None:
        self._environment = jinja2.Environment(
            loader=jinja2.FileSystemLoader(folder),
            autoescape=True,
            undefined=jinja2.StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            auto_reload=False,
        )
        self._environment.filters.update(
            count=wording.count,
            size=wording.size,
            speed=wording.speed,
            seconds=wording.seconds,
            moment=wording.moment,
            part=lambda text: quote(str(text), safe=""),
            pretty=lambda value: json.dumps(value, indent=2, ensure_ascii=False, default=str),
        )
        self._environment.globals.update(sparkline=charts.sparkline, bar=charts.bar, share=wording.share)

    def render(self, template: str, context: Mapping[str, Any]) -> str:
        return self._environment.get_template(template).render(context)
