"""Our rules for Avro beside Avro's own checker, whose jar comes with PySpark: thousands of pairs, one verdict each."""

import json
import random
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pyspark
import pytest

from ottla.registry.compatibility.avro import check_avro
from ottla.registry.errors import InvalidSchema
from ottla.registry.schemas.avro import parse_avro

PAIRS = 4000
PRIMITIVES = ["null", "boolean", "int", "long", "float", "double", "bytes", "string"]
DEFAULTS: dict[str, Any] = {
    "null": None, "boolean": True, "int": 1, "long": 2, "float": 1.5, "double": 2.5, "bytes": "x", "string": "y",
}  # fmt: skip


class Maker:
    """Schemas from few names, so that pairs have something in common; a few of them wrong."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.names: list[str] = []

    def schema(self, depth: int = 3) -> Any:
        kinds = ["primitive"] * 3 + (["record"] * 3 + ["enum", "fixed", "array", "map", "union"] if depth else [])
        kind = self.random.choice(kinds)
        if kind == "primitive":
            name = self.random.choice(PRIMITIVES)
            return name if self.random.random() < 0.8 else {"type": name, "prop": 1}
        if kind == "array":
            return {"type": "array", "items": self.schema(depth - 1)}
        if kind == "map":
            return {"type": "map", "values": self.schema(depth - 1)}
        if kind == "union":
            return self._union(depth)
        if self.names and self.random.random() < 0.2:
            return self.random.choice(self.names)
        return self._named(kind, depth)

    def _union(self, depth: int) -> list[Any]:
        branches: dict[str, Any] = {}
        for _ in range(self.random.randint(1, 3)):
            branch = self.schema(depth - 1)
            if isinstance(branch, list):
                continue
            key = branch if isinstance(branch, str) else branch.get("name", branch["type"])
            branches.setdefault(key, branch)
        return list(branches.values()) or ["null"]

    def _named(self, kind: str, depth: int) -> dict[str, Any]:
        free = [name for name in ("A", "B", "C", "D", "E") if name not in self.names]
        if not free:
            return {"type": "array", "items": "int"}
        name = self.random.choice(free)
        self.names.append(name)
        found: dict[str, Any] = {"type": kind, "name": name}
        if self.random.random() < 0.15:
            found["aliases"] = [self.random.choice("ABCDE")]
        if self.random.random() < 0.1:
            found["doc"] = "words"
        if kind == "enum":
            found["symbols"] = self.random.sample(["x", "y", "z"], self.random.randint(1, 3))
            if self.random.random() < 0.3:
                found["default"] = self.random.choice(found["symbols"])
        elif kind == "fixed":
            found["size"] = self.random.choice([4, 8])
        else:
            chosen = self.random.sample(["f", "g", "h"], self.random.randint(0, 3))
            found["fields"] = [self._field(each, depth) for each in chosen]
        return found

    def _field(self, name: str, depth: int) -> dict[str, Any]:
        kind = self.schema(depth - 1)
        found = {"name": name, "type": kind}
        first = kind[0] if isinstance(kind, list) else kind
        if isinstance(first, str) and first in DEFAULTS and self.random.random() < 0.4:
            wrong = self.random.random() < 0.05
            found["default"] = {"no": "way"} if wrong else DEFAULTS[first]
        if self.random.random() < 0.1:
            found["aliases"] = [self.random.choice([other for other in "fgh" if other != name])]
        return found


def changed(maker: Maker, schema: Any) -> Any:
    """Another schema that is almost the same: one part of it is made anew."""
    maker.names = []
    if not isinstance(schema, dict) or maker.random.random() < 0.3:
        return maker.schema()
    copy = json.loads(json.dumps(schema))
    if copy["type"] == "record" and copy["fields"]:
        at = maker.random.randrange(len(copy["fields"]))
        if maker.random.random() < 0.3:
            del copy["fields"][at]
        else:
            copy["fields"][at]["type"] = changed(maker, copy["fields"][at]["type"])
            copy["fields"][at].pop("default", None)
    elif copy["type"] == "enum":
        copy["symbols"] = maker.random.sample(["x", "y", "z"], 2)
        copy.pop("default", None)
    elif copy["type"] in ("array", "map"):
        key = "items" if copy["type"] == "array" else "values"
        copy[key] = changed(maker, copy[key])
    return copy


def pairs() -> list[tuple[str, str]]:
    found = []
    for seed in range(PAIRS):
        maker = Maker(seed)
        reader = maker.schema()
        found.append((json.dumps(reader), json.dumps(changed(maker, reader))))
    return found


def java(lines: str) -> list[list[str]]:
    jars = Path(pyspark.__file__).parent / "jars" / "*"
    program = Path(__file__).with_name("AvroOracle.java")
    command = ["java", "-XX:TieredStopAtLevel=1", "-cp", str(jars), str(program)]
    done = subprocess.run(command, input=lines, capture_output=True, text=True, check=True, timeout=300)
    return [line.split("\t") for line in done.stdout.splitlines()]


def own_verdict(reader: str, writer: str) -> tuple[str, str]:
    try:
        parsed, other = parse_avro(reader), parse_avro(writer)
    except InvalidSchema:
        return "invalid", ""
    return "no" if check_avro(parsed.root, other.root) else "yes", parsed.canonical


@pytest.mark.skipif(shutil.which("java") is None, reason="Avro's own checker needs Java")
def test_verdicts_and_canonical_forms_are_those_of_avro_itself() -> None:
    asked = pairs()
    answers = java("".join(f"{reader}\t{writer}\n" for reader, writer in asked))
    assert len(answers) == len(asked)
    counts = {"yes": 0, "no": 0, "invalid": 0}
    for (reader, writer), (said, text) in zip(asked, answers, strict=True):
        gave_up = "matches multiple fields" in text  # there our answer is no
        verdict = "no" if gave_up else said
        counts[verdict] += 1
        own, canonical = own_verdict(reader, writer)
        assert own == verdict, f"{reader} reads {writer}? {text}"
        assert canonical == text or verdict == "invalid" or gave_up
    assert min(counts.values()) > 20, f"the pairs are too much alike: {counts}"
