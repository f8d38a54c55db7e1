"""The steps that come with Ottla. A new one is a module and a line here; other packages use entry points."""

from ottla.pipelines.registry import Registry
from ottla.pipelines.steps.base import Step

_HERE = "ottla.pipelines.steps"

STEPS: Registry[Step] = Registry(
    "step",
    {
        "sql": f"{_HERE}.sql:SqlStep",
        "python": f"{_HERE}.python:PythonStep",
        "expect": f"{_HERE}.expect:ExpectStep",
        "filter": f"{_HERE}.filter:FilterStep",
        "map": f"{_HERE}.map:MapStep",
        "select": f"{_HERE}.columns:SelectStep",
        "drop": f"{_HERE}.columns:DropStep",
        "rename": f"{_HERE}.columns:RenameStep",
        "cast": f"{_HERE}.columns:CastStep",
        "flatten": f"{_HERE}.flatten:FlattenStep",
        "watermark": f"{_HERE}.watermark:WatermarkStep",
        "window": f"{_HERE}.window:WindowStep",
        "join": f"{_HERE}.join:JoinStep",
        "deduplicate": f"{_HERE}.deduplicate:DeduplicateStep",
        "stateful": f"{_HERE}.stateful:StatefulStep",
    },
    "ottla.steps",
)
