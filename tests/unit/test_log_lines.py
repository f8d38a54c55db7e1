"""Lines of the log are sentences: they begin with a capital, or with a name that has none."""

import ast
import re
from collections.abc import Iterator

from tests.unit.test_rules import modules

LEVELS = {"debug", "info", "warning", "error", "exception", "critical"}
NAME = re.compile(r"[\w]+[.-][\w.-]+")
"""Of a setting or a command, such as transactional.id."""
NOT_YET = {"ottla/broker/node.py", "ottla/broker/server/connection.py", "ottla/broker/server/listener.py"}
"""Entries may only go."""


def lines(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr in LEVELS
            and ast.unparse(node.func.value) == "logger"
            and node.args
            and isinstance(node.args[0], ast.Constant)
            and isinstance(node.args[0].value, str)
        ):
            yield node.args[0].value


def begins_badly(line: str) -> bool:
    return line[:1].islower() and not NAME.match(line)


def test_lines_of_the_log_begin_with_a_capital() -> None:
    found = [(name, line) for name, _, tree in modules() for line in lines(tree)]
    assert len(found) > 50, "the rule looks at the sources"
    assert [(name, line) for name, line in found if begins_badly(line) and name not in NOT_YET] == []


def test_the_rule_notices_what_it_should() -> None:
    told = ast.parse("logger.info('stopping')\nlogger.error('Stopped %s', x)\nlogger.debug('%s is there')")
    assert [line for line in lines(told) if begins_badly(line)] == ["stopping"]
    assert not begins_badly("transactional.id %s: Aborted")
