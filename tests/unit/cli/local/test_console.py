"""Which clusters a console is told of, and when it does not start."""

from pathlib import Path

import pytest

from ottla.cli.common.output import CommandError
from ottla.cli.local.console import main, read_clusters


def test_clusters_of_a_file() -> None:
    live, test = read_clusters(
        {
            "clusters": "live, test",
            "live.bootstrap.servers": "k:9093",
            "live.security.protocol": "SSL",
            "live.registry": "http://k:8081",
            "live.registry.user": "u",
            "live.registry.password": "p",
            "live.pipelines": "spark:4050, http://other:1",
            "live.mirrors": __file__,
            "live.state.dir": "state",
            "live.pipeline.files": str(Path(__file__).parent),
            "live.metrics": "1=k:7071, https://k2:7071/jmx",
            "live.monitors": "m:8000",
            "live.backups": "s3://bucket/kafka, ./backups",
            "test.bootstrap.servers": "t:9092",
        },
        "file",
    )
    assert live["client"] == {"bootstrap.servers": "k:9093", "security.protocol": "SSL"}
    assert live["registry_login"] == ("u", "p")
    assert live["pipelines"] == ("http://spark:4050", "http://other:1")
    assert live["mirrors"] == (__file__,)
    assert live["state_dir"] == str(Path("state").absolute())
    assert live["pipeline_files"] == str(Path(__file__).parent)
    assert live["metrics"] == (("http://k:7071/metrics", "1"), ("https://k2:7071/jmx", ""))
    assert live["monitors"] == ("http://m:8000/metrics",)
    assert live["backups"] == ("s3://bucket/kafka", "./backups")
    assert test["registry"] is None


@pytest.mark.parametrize(
    ("properties", "words"),
    [
        ({}, "say which clusters"),
        ({"clusters": "a"}, "a.bootstrap.servers is missing"),
        ({"clusters": "a", "b.bootstrap.servers": "x"}, "belongs to no cluster"),
        ({"clusters": "a/b", "a/b.bootstrap.servers": "x"}, "letters, digits"),
        ({"clusters": "a", "a.bootstrap.servers": "x", "a.mirrors": "no-such.yaml"}, "there is no file no-such.yaml"),
        ({"clusters": "a,a", "a.bootstrap.servers": "x"}, "two clusters"),
    ],
)
def test_files_that_do_not_work_say_why(properties: dict[str, str], words: str) -> None:
    with pytest.raises(CommandError, match=words):
        read_clusters(properties, "file")


def test_it_is_not_open_to_other_machines_by_accident() -> None:
    with pytest.raises(CommandError, match="everybody who reaches"):
        main(["--listen", "0.0.0.0:0"])


@pytest.mark.parametrize(
    "arguments",
    [
        ["--pipelines", "ftp://x"],
        ["--metrics", "1=ftp://x"],
        ["--pipeline-files", "no-such-folder"],
        ["--mirror", "no-such.yaml"],
        ["--cluster", "a"],
        ["--cluster", "a=b:1", "--cluster", "a=c:1"],
        ["--oidc-issuer", "x"],
    ],
)
def test_options_that_do_not_work_say_why(arguments: list[str]) -> None:
    with pytest.raises(CommandError):
        main([*arguments, "--listen", "127.0.0.1:0"])
