"""Which commands may share a JVM, and how long one is kept."""

import tempfile
from pathlib import Path

from ottla.spark.resident.keeper import Lending
from ottla.spark.resident.place import code_version, folder_of, key_of

HERE = {"HOME": "/home/me", "AWS_SECRET_ACCESS_KEY": "one", "TERM": "xterm"}


def test_commands_share_a_jvm_only_if_all_that_it_could_see_is_the_same() -> None:
    key = key_of(HERE, "/work", "1.0")
    assert key == key_of({**HERE, "TERM": "dumb", "COLUMNS": "80", "OTTLA_RESIDENT": "on"}, "/work", "1.0")
    assert key != key_of({**HERE, "AWS_SECRET_ACCESS_KEY": "two"}, "/work", "1.0")
    assert key != key_of({**HERE, "PYTHONPATH": "src"}, "/work", "1.0")
    assert key != key_of(HERE, "/elsewhere", "1.0")
    assert key != key_of(HERE, "/work", "1.1")
    assert code_version() == code_version()


def test_the_folder_of_sockets_is_the_user_s_alone() -> None:
    with tempfile.TemporaryDirectory(dir="/tmp") as cache:
        folder = folder_of({"XDG_CACHE_HOME": cache})
        assert folder == Path(cache, "ottla", "resident")
        assert folder.stat().st_mode & 0o777 == 0o700
        assert folder_of({"XDG_CACHE_HOME": f"{cache}/{'x' * 100}"}) != folder  # too long for a socket
        folder.chmod(0o755)
        assert folder_of({"XDG_CACHE_HOME": cache}) != folder


def test_a_driver_ends_when_nobody_has_used_it_for_long_or_it_was_used_often() -> None:
    lending = Lending(idle_seconds=10, leases_max=2, since=100)
    assert not lending.is_over(109)
    assert lending.is_over(110)
    first = lending.grant(109)
    assert first is not None
    assert not lending.is_over(1_000)
    lending.end(first, 1_000)
    assert not lending.is_over(1_009)
    second = lending.grant(1_009)
    assert second is not None
    assert second != first
    assert lending.grant(1_009) is None
    lending.end(second, 1_010)
    assert lending.is_over(1_010)


def test_a_driver_that_is_told_to_end_waits_for_those_who_use_it() -> None:
    lending = Lending(idle_seconds=10, since=0)
    lease = lending.grant(0)
    assert lease is not None
    lending.ending = True
    assert not lending.is_over(1)
    assert lending.grant(1) is None
    lending.end(lease, 2)
    assert lending.is_over(2)
