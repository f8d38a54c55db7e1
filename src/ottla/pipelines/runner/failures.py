"""Why a query failed, in words, and whether trying again can help. Pure: texts in, a verdict out."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from ottla.pipelines.durations import seconds_of
from ottla.pipelines.frames import BAD_RECORD
from ottla.pipelines.spec import Errors

BACKOFF_FACTOR = 2.0
BUSY_RETRIES = 20
"""So often in a row a machine may be too busy. It says nothing about the pipeline and does not count for `retries`."""


@dataclass(frozen=True)
class Failure:
    message: str
    fatal: bool
    busy: bool = False
    """The machine had too much to do; the same thing succeeds when it has less."""


# Spark gives a new Python process 10 s to start and to call back, and has no setting for it.
_BUSY = re.compile(r"Python worker (?:failed )?to connect back")
_BUSY_MESSAGE = (
    "the machine is too busy: a Python process of Spark did not start within the 10 s that Spark gives it "
    "(Python worker failed to connect back)"
)

# What Spark's exceptions and ours say when trying again would only say it again, and what to do instead.
_FATAL: tuple[tuple[str, str], ...] = (
    (re.escape(BAD_RECORD), "name a topic in `errors: {dead_letter: ...}`, or mend the record's producer"),
    (r"\bFatalFailure\b", ""),
    (r"\bInvalidOption\b", ""),
    (r"\bDataLoss\b", "set `on_data_loss: continue` on the source to go on with what is left"),
    (r"ANALYSIS|UNRESOLVED_COLUMN|PARSE_SYNTAX_ERROR|TABLE_OR_VIEW_NOT_FOUND|AnalysisException", "mend the step"),
    (r"\bFormatProblem\b", "mend the format's options"),
    (
        r"checkpoint.*(incompatible|corrupt|not compatible)|STREAMING_CHECKPOINT|STATE_STORE_.*SCHEMA",
        "the checkpoint belongs to another form of this pipeline: reprocess into a new version, or rename it",
    ),
    (r"\bProducerFenced\b|PRODUCER_FENCED|INVALID_PRODUCER_EPOCH", "another run of this pipeline has taken over"),
    (
        r"(TOPIC|GROUP|CLUSTER|TRANSACTIONAL_ID)_AUTHORIZATION_FAILED|SASL_AUTHENTICATION_FAILED",
        "the brokers refuse this user: check `client` and the ACLs",
    ),
)

# Errors about values (SQLSTATE 22...): an expression that fails for a row, and fails for it every time.
_BAD_VALUE = re.compile(r"\[(?P<condition>[A-Z_.]+)\] (?P<text>[^\n]+?)\.? SQLSTATE: 22\w{3}(?P<rest>.*)", re.DOTALL)
_PLACE_IN_SQL = re.compile(r"^\s*== SQL[^\n]*==\n(?P<line>[^\n]*)\n(?P<before> *)(?P<marks>\^+)")
_BAD_VALUE_ADVICE = (
    "an expression fails for a row: compute it in a `map` step, which sets such rows aside as dead letters, or use "
    "the `try_` functions of SQL"
)

_PLAN = "=== Streaming Query ==="
_PYTHON_ERROR = re.compile(r"^(?:[\w.]+\.)?(?P<name>[A-Z]\w*): (?P<text>.+)$")
_NOISE = (
    "SQLSTATE",
    "Py4JException",
    "PythonException",
    "StreamingQueryException",
    "SparkException",
    "SparkRuntimeException",
)


def judge(text: str) -> Failure:
    """A verdict on the text of an exception, with every traceback in it."""
    text = _without_plan(text)
    if _BUSY.search(text):
        return Failure(_BUSY_MESSAGE, fatal=False, busy=True)
    message = the_point(text)
    for pattern, advice in _FATAL:
        if re.search(pattern, text, re.IGNORECASE if pattern.startswith("checkpoint") else 0):
            return Failure(f"{message}; {advice}" if advice else message, fatal=True)
    bad_value = _BAD_VALUE.search(text)
    if bad_value is not None:
        return Failure(f"{_value_error(bad_value)}; {_BAD_VALUE_ADVICE}", fatal=True)
    return Failure(message, fatal=False)


def _value_error(found: re.Match[str]) -> str:
    """Spark's first sentence, and the part of the query that it underlines; what it would set to what is left out."""
    said = found["text"].partition(". Use ")[0].partition(" Use `try_")[0].rstrip(".")
    place = _PLACE_IN_SQL.match(found["rest"])
    if place is None:
        return f"{found['condition']}: {said}"
    begin = len(place["before"])
    return f"{found['condition']}: {said}, in `{place['line'][begin : begin + len(place['marks'])]}`"


def the_point(text: str) -> str:
    """The one line of Spark's many that says what happened: the innermost Python error, or else the first line."""
    text = _without_plan(text)
    if BAD_RECORD in text:
        found = text[text.index(BAD_RECORD) :].splitlines()[0]
        return found.split(" SQLSTATE")[0].strip()
    candidates = []
    for line in text.splitlines():
        found_error = _PYTHON_ERROR.match(line.strip().removeprefix("Caused by: "))
        if found_error and found_error["name"] not in _NOISE and not line.strip().startswith("at "):
            candidates.append(f"{found_error['name']}: {found_error['text'].partition(' SQLSTATE: ')[0]}")
    if candidates:
        return candidates[-1]
    first = next((line.strip() for line in text.splitlines() if line.strip()), "no reason was given")
    return first.split(" SQLSTATE")[0]


def behind_the_first_words(text: str, causes: Sequence[str]) -> str:
    """What Spark says of an exception with what its causes say, all before the plan."""
    said, plan, rest = text.partition(_PLAN)
    return "\n".join([said.rstrip(), *(f"Caused by: {cause}" for cause in causes), f"{plan}{rest}"]) if causes else text


def _without_plan(text: str) -> str:
    """Spark shows the plan of a query that failed, with all messages that it could raise and has not."""
    return text.partition(_PLAN)[0]


def pause_before_restart(failures: int, errors: Errors, *, busy: bool = False) -> float | None:
    """Seconds to wait before the next try after so many failures of this kind in a row; None: give up."""
    if errors.restart == "never":
        return None
    longest = seconds_of(errors.backoff_max)
    if failures > (BUSY_RETRIES if busy else errors.retries):
        return longest if errors.restart == "always" else None
    return min(longest, seconds_of(errors.backoff) * BACKOFF_FACTOR ** (failures - 1))
