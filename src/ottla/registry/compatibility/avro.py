"""Can a reader with one Avro schema read what was written with another? The rules of Avro's own checker.

| reader ← writer | ok |
|---|---|
| the same primitive; a wider number: int → long → float → double; string ↔ bytes | yes |
| record: a field that only the reader has | with a default |
| record: a field that only the writer has | yes |
| names of records, enums and fixed | equal without namespace, or an alias |
| enum: a symbol that the reader does not know | with a default of the enum |
| fixed | the same size |
| writer's union | every branch readable |
| reader's union | one branch reads it |
| logical types, docs, order | ignored |
"""

from ottla.registry.compatibility.findings import Finding, Work
from ottla.registry.schemas.avro_types import PRIMITIVES, AvroType, split_name

PROMOTIONS = {
    "long": {"int"},
    "float": {"int", "long"},
    "double": {"int", "long", "float"},
    "string": {"bytes"},
    "bytes": {"string"},
}
"""From which other types a primitive can be read."""


def check_avro(reader: AvroType, writer: AvroType, work: Work | None = None) -> list[Finding]:
    """Empty: the reader can."""
    return _Checker(work or Work()).check(reader, writer, "")


class _Checker:
    def __init__(self, work: Work) -> None:
        self._work = work
        self._known: dict[tuple[int, int], list[Finding]] = {}

    def check(self, reader: AvroType, writer: AvroType, path: str) -> list[Finding]:
        """What is being compared further up is taken for compatible: a loop adds no reason of its own."""
        self._work.step()
        key = (id(reader), id(writer))
        known = self._known.get(key)
        if known is None:
            self._known[key] = []
            known = self._known[key] = self._compare(reader, writer, path)
        return known

    def _compare(self, reader: AvroType, writer: AvroType, path: str) -> list[Finding]:
        if writer.kind == "union":
            return self._writer_union(reader, writer, path)
        if reader.kind == "union":
            if any(not self.check(branch, writer, path) for branch in reader.branches):
                return []
            text = f"the reader's union has no branch that reads {writer.shown}"
            return [Finding("MISSING_UNION_BRANCH", path, text)]
        if _alike(reader.kind) != _alike(writer.kind):
            if writer.kind in PROMOTIONS.get(reader.kind, ()):
                return []
            text = f"a reader of {reader.shown} cannot read {writer.shown}"
            return [Finding("TYPE_MISMATCH", path, text)]
        if reader.kind in PRIMITIVES:
            return []
        if reader.items is not None and writer.items is not None:
            return self.check(reader.items, writer.items, f"{path}/{'items' if reader.kind == 'array' else 'values'}")
        found = self._names(reader, writer, path)
        if reader.kind == "enum":
            return found + self._symbols(reader, writer, path)
        if reader.kind == "fixed":
            if reader.size != writer.size:
                text = f"fixed {reader.name} has {reader.size} bytes in the reader and {writer.size} in the writer"
                found.append(Finding("FIXED_SIZE_MISMATCH", f"{path}/size", text))
            return found
        return found + self._fields(reader, writer, path)

    def _writer_union(self, reader: AvroType, writer: AvroType, path: str) -> list[Finding]:
        found: list[Finding] = []
        for number, branch in enumerate(writer.branches):
            reasons = self.check(reader, branch, f"{path}/{number}")
            if reasons and reader.kind == "union":
                text = f"the reader's union has no branch that reads {branch.shown}"
                reasons = [Finding("MISSING_UNION_BRANCH", f"{path}/{number}", text)]
            found += reasons
        return found

    def _names(self, reader: AvroType, writer: AvroType, path: str) -> list[Finding]:
        if reader.short_name == split_name(writer.name)[1] or writer.name in reader.aliases:
            return []
        text = f"the reader's {reader.shown} is called {writer.name} by the writer; an alias would join them"
        return [Finding("NAME_MISMATCH", f"{path}/name", text)]

    def _symbols(self, reader: AvroType, writer: AvroType, path: str) -> list[Finding]:
        known = set(reader.symbols)
        unknown = [symbol for symbol in writer.symbols if symbol not in known]
        self._work.step(len(writer.symbols))
        if not unknown or reader.enum_default is not None:
            return []
        text = f"enum {reader.name} of the reader has no default and does not know {', '.join(unknown[:20])}"
        return [Finding("MISSING_ENUM_SYMBOLS", f"{path}/symbols", text)]

    def _fields(self, reader: AvroType, writer: AvroType, path: str) -> list[Finding]:
        written = {each.name: each for each in writer.fields}
        found: list[Finding] = []
        for number, each in enumerate(reader.fields):
            self._work.step()
            sources = [written[name] for name in dict.fromkeys((each.name, *each.aliases)) if name in written]
            where = f"{path}/fields/{number}"
            if len(sources) > 1:
                text = f"field {each.name} of the reader is both {sources[0].name} and {sources[1].name} of the writer"
                found.append(Finding("AMBIGUOUS_ALIAS", where, text))
            elif sources:
                found += self.check(each.type, sources[0].type, f"{where}/type")
            elif not each.has_default:
                text = (
                    f"field {each.name} of record {reader.name} has no default and is missing in what was written; "
                    "give it a default"
                )
                found.append(Finding("READER_FIELD_MISSING_DEFAULT_VALUE", where, text))
        return found


def _alike(kind: str) -> str:
    return "record" if kind == "error" else kind
