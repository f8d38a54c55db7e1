"""What a failure says, whether trying again can help, and when."""

import pytest

from ottla.pipelines.frames import BAD_RECORD
from ottla.pipelines.runner.failures import BUSY_RETRIES, behind_the_first_words, judge, pause_before_restart, the_point
from ottla.pipelines.spec import Errors

PYTHON = """An exception was raised by the Python Proxy. Return Message: Traceback (most recent call last):
  File "clientserver.py", line 641, in _call_proxy
    return_value = getattr(self.pool[obj_id], method)(*params)
ottla.pipelines.errors.ConnectorProblem: the database is away
\tat py4j.Protocol.getReturnValue(Protocol.java:476)
"""


def test_the_innermost_python_error_is_the_point() -> None:
    assert the_point(PYTHON) == "ConnectorProblem: the database is away"
    assert not judge(PYTHON).fatal


def test_spark_s_codes_after_a_python_error_are_passed_over() -> None:
    text = "[STREAM_FAILED] terminated\nottla.pipelines.errors.ConnectorProblem: away\nSQLSTATE: 39000 SQLSTATE: XXKST"
    assert the_point(text) == "ConnectorProblem: away"
    assert the_point("ConnectorProblem: away SQLSTATE: 39000") == "ConnectorProblem: away"


def test_without_one_the_first_line_is() -> None:
    assert (
        the_point("[DIVIDE_BY_ZERO] Division by zero. SQLSTATE: 22012\n\tat x") == "[DIVIDE_BY_ZERO] Division by zero."
    )
    assert the_point("") == "no reason was given"


@pytest.mark.parametrize(
    ("text", "advice"),
    [
        (f"x\n[USER_RAISED_EXCEPTION] {BAD_RECORD} source orders, offset 3: malformed. SQLSTATE: P0001", "dead_letter"),
        ("FatalFailure: do this", "do this"),
        ("ottla.spark.errors.InvalidOption: there is no topic `x`", "there is no topic"),
        ("ottla.spark.errors.DataLoss: records are gone", "on_data_loss"),
        ("[UNRESOLVED_COLUMN.WITH_SUGGESTION] A column `x` cannot be resolved", "mend the step"),
    ],
)
def test_what_would_only_happen_again_is_fatal_and_says_what_to_do(text: str, advice: str) -> None:
    failure = judge(text)
    assert failure.fatal
    assert advice in failure.message


DIVISION = """org.apache.spark.SparkException: Job aborted
Caused by: org.apache.spark.SparkArithmeticException: [DIVIDE_BY_ZERO] Division by zero. Use `try_divide` to tolerate \
divisor being 0 and return NULL instead. If necessary set "spark.sql.ansi.enabled" to "false". SQLSTATE: 22012
== SQL (line 1, position 12) ==
SELECT id, amount / n AS share FROM orders
           ^^^^^^^^^^

\tat org.apache.spark.sql.errors.QueryExecutionErrors$.divideByZeroError(QueryExecutionErrors.scala:203)
"""


def test_an_expression_that_fails_for_a_row_fails_for_good_and_is_shown() -> None:
    failure = judge(DIVISION)
    assert failure.fatal
    assert failure.message.startswith(
        "DIVIDE_BY_ZERO: Division by zero, in `amount / n`; an expression fails for a row"
    )
    assert "`map` step" in failure.message
    assert "`try_` functions" in failure.message
    cast = "[CAST_INVALID_INPUT] The value 'x' of the type \"STRING\" cannot be cast. SQLSTATE: 22018"
    assert judge(cast).message.startswith("CAST_INVALID_INPUT: The value 'x' of the type")


def test_messages_in_a_plan_that_nothing_has_raised_are_passed_over() -> None:
    plan = f"Project [raise_error({BAD_RECORD} , x)]"
    failure = judge(f"[STREAM_FAILED] terminated: no route to host\n=== Streaming Query ===\n{plan}")
    assert failure.message == "[STREAM_FAILED] terminated: no route to host"
    assert not failure.fatal


def test_the_cause_says_what_spark_does_not() -> None:
    """The first words may be no more than where Spark waited."""
    plan = f"\n=== Streaming Query ===\nProject [raise_error({BAD_RECORD} , x)]"
    causes = ["Exception thrown in awaitResult:", "java.io.IOException: No space left on device\n\tat java.base/x"]
    text = behind_the_first_words(f"Exception thrown in awaitResult: {plan}", causes)
    assert judge(text).message == "IOException: No space left on device"
    assert text.endswith(plan)
    assert behind_the_first_words("no route to host", []) == "no route to host"


def test_pauses_grow_and_end_as_the_file_says() -> None:
    few = Errors(retries=3, backoff="1 second", backoff_max="3 seconds")
    assert [pause_before_restart(number, few) for number in (1, 2, 3, 4)] == [1.0, 2.0, 3.0, None]
    always = Errors(retries=1, backoff="1 second", backoff_max="3 seconds", restart="always")
    assert [pause_before_restart(number, always) for number in (1, 2, 99)] == [1.0, 3.0, 3.0]
    assert pause_before_restart(1, Errors(restart="never")) is None
    assert pause_before_restart(1, Errors(retries=0)) is None


def test_a_machine_that_is_too_busy_is_waited_for_longer_than_a_pipeline_that_fails() -> None:
    failure = judge(
        "[STREAM_FAILED] Query [id = 1] terminated with exception: Python worker failed to connect back.\n"
        "Caused by: java.net.SocketTimeoutException: Timed out while waiting for the Python worker to connect back"
    )
    assert (failure.fatal, failure.busy) == (False, True)
    assert "the machine is too busy" in failure.message
    assert not judge("[STREAM_FAILED] terminated: no route to host").busy
    few = Errors(retries=1, backoff="1 second", backoff_max="3 seconds")
    pauses = [pause_before_restart(number, few, busy=True) for number in range(1, BUSY_RETRIES + 2)]
    assert pauses == [1.0, 2.0, *[3.0] * (BUSY_RETRIES - 2), None]
    assert pause_before_restart(1, Errors(restart="never"), busy=True) is None
