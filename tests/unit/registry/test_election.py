"""Who writes: the eligible instance with the smallest URL, in the bytes of Confluent's group protocol."""

import json

from ottla.registry.election import DUPLICATE_URLS, Assignment, Identity, choose, decode_assignment, decode_identity

ONE, TWO = Identity("b", 8081), Identity("a", 8081)


def test_the_smallest_url_writes() -> None:
    assert choose({"m1": ONE, "m2": TWO}) == Assignment(0, "m2", TWO)
    assert choose({"m1": ONE, "m2": TWO._replace(eligible=False)}) == Assignment(0, "m1", ONE)
    assert choose({"m1": ONE._replace(eligible=False)}) == Assignment(0, None, None)
    assert choose({"m1": ONE, "m2": ONE}).error == DUPLICATE_URLS


def test_bytes() -> None:
    assert ONE.encode() == b'{"version":1,"host":"b","port":8081,"master_eligibility":true,"scheme":"http"}'
    assert decode_identity(json.loads(ONE.encode())) == ONE
    chosen = choose({"m1": ONE})
    assert decode_assignment(chosen.encode()) == chosen
    assert list(json.loads(chosen.encode())) == ["version", "error", "master", "master_identity"]
    assert Identity("::1", 1).url == "http://[::1]:1"
