"""What a metric says of a client with a quota."""

from ottla.broker.quotas.clients import ClientQuotas
from ottla.broker.quotas.mutations import MutationCharge
from ottla.broker.quotas.showing import show
from ottla.telemetry import catalogue
from ottla.telemetry.declared import waiting
from ottla.telemetry.registry import Telemetry

ALICE = (("users", "alice"),)
QUOTAS = {
    "producer_byte_rate": "100",
    "consumer_byte_rate": "100",
    "request_percentage": "10",
    "controller_mutation_rate": "1",
}


def test_metrics_move_with_what_is_used_and_with_waits() -> None:
    quotas, telemetry, now = ClientQuotas(), Telemetry(), [0]
    show(quotas, telemetry, lambda: now[0])
    assert telemetry.snapshot() == [], "nobody has a quota"
    quotas.use({ALICE: QUOTAS})
    client = ("alice", "app")
    for kind, used in ((quotas.produce, 2_000), (quotas.fetch, 1_500), (quotas.requests, 1_200_000_000)):
        assert kind is not None
        budget = kind.of(client, 0)
        assert budget is not None
        budget.charge(used, 0)
    quotas.exempt.note(300_000_000, 0)
    assert quotas.mutations is not None
    bucket = quotas.mutations.of(client, 0)
    assert bucket is not None
    MutationCharge(bucket, lambda: now[0], strict=False)("topic", 14)
    told = {sample.metric: (sample.labels, sample.value) for sample in telemetry.snapshot()}
    assert told == {
        catalogue.QUOTA_PRODUCED: (("alice", ""), 200),
        catalogue.QUOTA_PRODUCE_WAIT: (("alice", ""), 10_000),
        catalogue.QUOTA_FETCHED: (("alice", ""), 150),
        catalogue.QUOTA_FETCH_WAIT: (("alice", ""), 5_000),
        catalogue.QUOTA_TIME: (("alice", ""), 12),
        catalogue.QUOTA_TIME_WAIT: (("alice", ""), 1_000),
        catalogue.QUOTA_TIME_EXEMPT: ((), 3),
        catalogue.QUOTA_MUTATIONS: (("alice", ""), 1.4),
        **dict.fromkeys((waiting.PRODUCE, waiting.FETCH, waiting.REQUEST, waiting.MUTATION), ((), 1)),
        catalogue.QUOTA_TOKENS: (("alice", ""), -3),
        catalogue.QUOTA_MUTATION_WAIT: (("alice", ""), 3_000),
    }
    now[0] = 60_000
    later = {sample.metric: sample.value for sample in telemetry.snapshot()}
    assert later[catalogue.QUOTA_PRODUCED] == later[catalogue.QUOTA_PRODUCE_WAIT] == 0
    assert later[waiting.PRODUCE] == later[waiting.MUTATION] == 0, "they are over"
    assert later[catalogue.QUOTA_TOKENS] == 11
