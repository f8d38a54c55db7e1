"""docs/steps.md lists every step and format with its options, and its examples are ones that lint would take."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ottla.pipelines.loading import read_yaml
from ottla.pipelines.steps.registry import STEPS
from ottla.spark.formats.api import FORMATS, build_format
from ottla.spark.formats.spec import FormatSpec

PAGE = (Path(__file__).parents[3] / "docs" / "steps.md").read_text()
STEPS_TEXT, _, FORMATS_TEXT = PAGE.partition("## Formats")


def sections(text: str) -> dict[str, str]:
    parts = re.split(r"^### `(\w+)`$", text, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def documented_options(section: str) -> set[str]:
    return set(re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE))


def example(section: str) -> Any:
    found = re.search(r"```yaml\n(.*?)```", section, re.DOTALL)
    assert found is not None
    return read_yaml(Path("steps.md"), found[1])[0]


def test_every_step_and_format_has_a_section() -> None:
    assert sorted(sections(STEPS_TEXT)) == sorted(STEPS.kinds())
    assert sorted(sections(FORMATS_TEXT)) == sorted(FORMATS)


@pytest.mark.parametrize("kind", STEPS.kinds())
def test_a_step_s_options_and_example_are_true(kind: str) -> None:
    step_type = STEPS.get(kind)
    section = sections(STEPS_TEXT)[kind]
    assert documented_options(section) == set(step_type.Options.__struct_encode_fields__)
    for entry in example(section):
        options = entry[kind] if isinstance(entry[kind], Mapping) else entry
        assert step_type(msgspec.convert(options, step_type.Options)).problems() == []


@pytest.mark.parametrize("name", sorted(FORMATS))
def test_a_format_s_options_and_example_are_true(name: str) -> None:
    section = sections(FORMATS_TEXT)[name]
    assert documented_options(section) == set(FORMATS[name].Options.__struct_encode_fields__)
    entry = example(section)
    assert entry["format"] == name
    build_format(FormatSpec(name=name, schema=entry.get("schema"), options=entry.get("format_options", {})))
