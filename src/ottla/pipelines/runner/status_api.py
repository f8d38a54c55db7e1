"""HTTP for machines: GET /status, /healthz and /metrics, POST /stop (?pipeline=NAME for one of several)."""

from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ottla.http.application import Served, application, json_answer
from ottla.pipelines.runner.metrics import metrics_text
from ottla.telemetry.metric import Metric
from ottla.telemetry.prometheus import OPENMETRICS, TEXT

PAGE_HEADER = "X-Ottla"
"""A page in somebody's browser can post to loopback, but not with this header and without being asked."""


def status_api(
    status: Callable[[], dict[str, Any] | None],
    stop: Callable[[str | None], None],
    spark: Callable[[], Mapping[Metric, float]] = dict,
) -> Served:
    """Serves what `status` returns (None: nothing runs yet), and `spark` says of itself; `stop` is told the name of a
    pipeline, or None for all."""

    def document() -> dict[str, Any]:
        found = status()
        if found is None:
            raise HTTPException(HTTPStatus.SERVICE_UNAVAILABLE, "Spark is starting; ask again in some seconds")
        return found

    # Not `async`: they ask Spark and wait for it, in a thread.
    def show_status(request: Request) -> Response:
        return json_answer(document())

    def show_health(request: Request) -> Response:
        failed = [each["pipeline"] for each in document()["pipelines"] if each["state"] in ("failed", "waiting")]
        code = HTTPStatus.SERVICE_UNAVAILABLE if failed else HTTPStatus.OK
        return json_answer({"healthy": not failed, "not_running": failed}, code)

    def show_metrics(request: Request) -> Response:
        openmetrics = "application/openmetrics-text" in request.headers.get("accept", "")
        text = metrics_text(document(), spark(), openmetrics=openmetrics)
        return Response(text, headers={"content-type": OPENMETRICS if openmetrics else TEXT})

    def stop_pipelines(request: Request) -> Response:
        if PAGE_HEADER not in request.headers:
            raise HTTPException(HTTPStatus.FORBIDDEN, f"POST wants the header {PAGE_HEADER}, of any value")
        name = request.query_params.get("pipeline") or None
        known = [each["pipeline"] for each in document()["pipelines"]]
        if name is not None and name not in known:
            unknown = {"error": f"there is no pipeline {name} here", "here": known}
            return json_answer(unknown, HTTPStatus.NOT_FOUND)
        stop(name)
        return json_answer({"stopping": [name] if name else known}, HTTPStatus.ACCEPTED)

    return application(
        [
            Route("/status", show_status),
            Route("/healthz", show_health),
            Route("/metrics", show_metrics),
            Route("/stop", stop_pipelines, methods=["POST"]),
        ]
    )
