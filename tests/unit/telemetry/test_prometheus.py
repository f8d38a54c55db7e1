"""Metrics as text, under the names of both kinds of dashboards."""

from ottla.telemetry.catalogue import CONNECTIONS, ISR_SHRINKS, LOG_END_OFFSET, LOG_SIZE, METRICS, REQUESTS
from ottla.telemetry.declared.network import TOTAL_TIME
from ottla.telemetry.histogram import Histogram
from ottla.telemetry.metric import Row, Table
from ottla.telemetry.prometheus import other_names, render

TABLES = [
    Table((ISR_SHRINKS,), [((), (3,))]),
    Table((REQUESTS,), [(("Fetch", "17"), (2,)), (("Fetch", "18"), (5,))]),
    Table((LOG_SIZE,), [(('a"b\\c\n', "0"), (10,))]),
]


def test_text() -> None:
    assert (
        render(TABLES)
        == f"""\
# HELP kafka_server_replicamanager_isrshrinks_total {ISR_SHRINKS.doc}
# TYPE kafka_server_replicamanager_isrshrinks_total counter
kafka_server_replicamanager_isrshrinks_total 3
# HELP kafka_server_replicamanager_isrshrinkspersec {ISR_SHRINKS.doc}
# TYPE kafka_server_replicamanager_isrshrinkspersec untyped
kafka_server_replicamanager_isrshrinkspersec 3
# HELP kafka_network_requestmetrics_requests_total {REQUESTS.doc}
# TYPE kafka_network_requestmetrics_requests_total counter
kafka_network_requestmetrics_requests_total{{request="Fetch",version="17"}} 2
kafka_network_requestmetrics_requests_total{{request="Fetch",version="18"}} 5
# HELP kafka_network_requestmetrics_requestspersec {REQUESTS.doc}
# TYPE kafka_network_requestmetrics_requestspersec untyped
kafka_network_requestmetrics_requestspersec{{request="Fetch",version="17"}} 2
kafka_network_requestmetrics_requestspersec{{request="Fetch",version="18"}} 5
# HELP kafka_log_log_size {LOG_SIZE.doc}
# TYPE kafka_log_log_size gauge
kafka_log_log_size{{topic="a\\"b\\\\c\\n",partition="0"}} 10
"""
    )


def test_openmetrics() -> None:
    tables = [Table((ISR_SHRINKS,), [((), (3,))]), Table((CONNECTIONS,), [(("L",), (0.5,))])]
    lines = render(tables, openmetrics=True).splitlines()
    assert "# TYPE kafka_server_replicamanager_isrshrinks counter" in lines
    assert "kafka_server_replicamanager_isrshrinks_total 3" in lines
    assert "# TYPE kafka_server_replicamanager_isrshrinkspersec unknown" in lines
    assert 'kafka_server_socket_server_metrics_connection_count{listener="L"} 0.5' in lines
    assert lines[-1] == "# EOF"


def test_a_table_with_several_metrics_tells_one_after_the_other() -> None:
    rows: list[Row] = [(("a", "0"), (1, 2)), (("a", "1"), (3, 4))]
    lines = [line for line in render([Table((LOG_SIZE, LOG_END_OFFSET), rows)]).splitlines() if line[0] != "#"]
    assert [line.split(" ")[1] for line in lines] == ["1", "3", "2", "4"]
    assert lines[2] == 'kafka_log_log_logendoffset{topic="a",partition="0"} 2'


def test_a_histogram_has_jmx_digits_and_its_count_twice() -> None:
    histogram = Histogram(unit=0.001)
    for value in range(1, 1001):
        histogram.record(value)
    lines = render([Table((TOTAL_TIME,), [(("Fetch",), (histogram.read(),))])]).splitlines()
    name = TOTAL_TIME.name
    found = {line.split(" ")[0]: float(line.split(" ")[1]) for line in lines if line[0] != "#"}
    assert list(found) == [
        *(f'{name}{{request="Fetch",quantile="{each}"}}' for each in ("0.50", "0.75", "0.95", "0.98", "0.99", "0.999")),
        f'{name}{{request="Fetch"}}',
        f'{name}_count{{request="Fetch"}}',
    ]
    assert found[f'{name}{{request="Fetch"}}'] == found[f'{name}_count{{request="Fetch"}}'] == 1000
    assert abs(found[f'{name}{{request="Fetch",quantile="0.99"}}'] - 0.99) < 0.02


def test_what_is_no_number_is_written_as_openmetrics_wants_it() -> None:
    rows: list[Row] = [(("a",), (value,)) for value in (float("nan"), float("inf"), float("-inf"), True)]
    lines = [line.split(" ")[1] for line in render([Table((CONNECTIONS,), rows)]).splitlines() if line[0] != "#"]
    assert lines[:4] == ["NaN", "+Inf", "-Inf", "1"]


def test_no_two_metrics_share_a_name() -> None:
    names = [name for metric in METRICS.values() for name in (metric.name, *other_names(metric))]
    assert len(set(names)) == len(names)
