"""The folder of handlers reads like the list of what is served."""

from pathlib import Path

from ottla.broker import handlers
from ottla.broker.handlers.table import SERVED

OTHERS = {"__init__", "context", "table"}


def test_a_handler_is_one_file_named_for_its_api_and_helpers_have_rooms() -> None:
    found = {path.stem for path in Path(handlers.__file__).parent.glob("*.py")}
    assert found - OTHERS == {key.name.lower() for key in SERVED}
