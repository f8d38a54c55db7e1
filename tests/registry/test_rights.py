"""Who is let in, and what they may do: users of a file, users and ACLs of a broker, over HTTPS."""

import ssl
import urllib.request
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, ScramCredentialInfo, ScramMechanism, UserScramCredentialUpsertion

from ottla.cli.main import main
from ottla.model.acls import ALL_OPERATIONS, AclBinding, AclEntry, PatternType, Permission, ResourcePattern
from ottla.model.rights import Operation, Resource
from ottla.registry.client import RegistryClient
from ottla.registry.errors import RegistryError
from ottla.registry.rest.login import BadUsersFile, read_users
from ottla.registry.rest.rights import allowed, topic_of
from ottla.testing import broker
from ottla.testing.load import quiet
from ottla.testing.registry import registry, write_users
from ottla.testing.running import RunningBroker
from ottla.testing.waiting import wait_until
from ottla.tls.authority import LOCAL_HOSTS, key_store_pem, make_authority


def rule(
    principal: str,
    operation: int,
    name: str,
    permission: Permission = Permission.ALLOW,
    kind: PatternType = PatternType.LITERAL,
) -> AclBinding:
    return AclBinding(ResourcePattern(Resource.TOPIC, name, kind), AclEntry(principal, "*", operation, permission))


RULES = [
    rule("User:joe", Operation.WRITE, "orders"),
    rule("User:ann", ALL_OPERATIONS, "or", kind=PatternType.PREFIXED),
    rule("User:ann", Operation.DELETE, "orders", Permission.DENY),
    rule("User:*", Operation.DESCRIBE, "open"),
]


@pytest.mark.parametrize(
    ("user", "operation", "topic", "may"),
    [
        ("joe", Operation.WRITE, "orders", True),
        ("joe", Operation.DESCRIBE, "orders", True),
        ("joe", Operation.ALTER, "orders", False),
        ("joe", Operation.WRITE, "others", False),
        ("ann", Operation.ALTER, "orders", True),
        ("ann", Operation.DELETE, "orders", False),
        ("bob", Operation.DESCRIBE, "open", True),
        ("bob", Operation.WRITE, "open", False),
    ],
)
def test_rules(user: str, operation: Operation, topic: str, may: bool) -> None:
    assert allowed(RULES, f"User:{user}", "127.0.0.1", operation, Resource.TOPIC, topic) is may


def test_a_subject_is_its_topic() -> None:
    assert [topic_of(each) for each in ("a-value", "a-key", ":.c:a-value", "shop.Order")] == [
        "a",
        "a",
        "a",
        "shop.Order",
    ]


def test_a_file_of_users(tmp_path: Path) -> None:
    path = tmp_path / "users"
    path.write_text("# people\njoe: secret,admin\n\nann:x:y\n")
    assert read_users(str(path)) == {"joe": "secret", "ann": "x:y"}
    path.write_text("joe\n")
    with pytest.raises(BadUsersFile, match="line 1"):
        read_users(str(path))


def test_https_and_users(ottla_broker: RunningBroker, tmp_path: Path) -> None:
    authority = make_authority()
    keys, trust = tmp_path / "keys.pem", tmp_path / "ca.pem"
    keys.write_text(key_store_pem(authority.issue("registry", list(LOCAL_HOSTS))))
    trust.write_text(authority.pem)
    users = write_users(tmp_path / "users", [("joe", "secret")])
    own = ["--topic", "_https", "--group", "https", "--keystore", str(keys), "--users", str(users)]
    with registry(ottla_broker.bootstrap, *own) as running:
        assert running.url.startswith("https://")
        with RegistryClient(running.url, user="joe", password="secret", ca_file=str(trust)) as client:
            assert client.register("a-value", '"int"').version == 1
        for user, password in (("joe", "wrong"), ("eve", "secret"), (None, None)):
            with RegistryClient(running.url, user=user, password=password, ca_file=str(trust)) as client:
                with pytest.raises(RegistryError) as caught:
                    client.get("/subjects")
                assert caught.value.status == 401
        with pytest.raises(OSError), urllib.request.urlopen(running.url, context=ssl.create_default_context()):
            pass


@pytest.mark.ottla(
    {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS",
    }
)
def test_acls_of_the_broker(ottla_fresh_broker: RunningBroker, tmp_path: Path) -> None:
    users = write_users(tmp_path / "users", [("admin", "a"), ("joe", "j"), ("eve", "e")])
    own = ["--users", str(users), "--authorize", "--super-users", "User:admin"]
    grant = ["acls", "--bootstrap-server", ottla_fresh_broker.bootstrap, "--add", "--allow-principal", "User:joe"]
    assert main([*grant, "--operation", "Write", "--topic", "orders"]) == 0
    with (
        registry(ottla_fresh_broker.bootstrap, *own) as running,
        RegistryClient(running.url, user="admin", password="a") as admin,
        RegistryClient(running.url, user="joe", password="j") as joe,
        RegistryClient(running.url, user="eve", password="e") as eve,
    ):
        admin.register("secret-value", '"int"')
        made = joe.register("orders-value", '"string"')
        assert joe.get("/subjects") == ["orders-value"]
        assert sorted(admin.get("/subjects")) == ["orders-value", "secret-value"]
        assert eve.get("/subjects") == []
        refused = [
            (eve, "GET", "/subjects/orders-value/versions/latest"),
            (eve, "GET", f"/schemas/ids/{made.schema_id}"),
            (joe, "GET", "/subjects/secret-value/versions"),
            (joe, "DELETE", "/subjects/orders-value"),
            (joe, "PUT", "/config"),
        ]
        for who, method, path in refused:
            with pytest.raises(RegistryError) as caught:
                who.call(method, path, body={"compatibility": "NONE"} if method == "PUT" else None)
            assert caught.value.status == 403, (method, path)
        assert joe.get(f"/schemas/ids/{made.schema_id}")["schema"] == '"string"'


SCRAM_MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule"


def set_password(bootstrap: str, user: str, password: str, mechanism: ScramMechanism) -> None:
    change = UserScramCredentialUpsertion(user, ScramCredentialInfo(mechanism, 4096), password.encode())
    admin = AdminClient({"bootstrap.servers": bootstrap}, logger=quiet)
    admin.alter_user_scram_credentials([change])[user].result(30)


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_users_of_the_brokers(mechanism: str, tmp_path: Path) -> None:
    """The right password, a wrong one, and one that was right until it was changed."""
    kind = ScramMechanism[mechanism.replace("-", "_")]
    settings = {
        "listeners": "PLAINTEXT://127.0.0.1:0,SASL://127.0.0.1:0",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,SASL:SASL_PLAINTEXT",
        "inter.broker.listener.name": "PLAINTEXT",
        "sasl.enabled.mechanisms": mechanism,
    }
    own = tmp_path / "client.properties"
    own.write_text(
        f"security.protocol=SASL_PLAINTEXT\nsasl.mechanism={mechanism}\n"
        f'sasl.jaas.config={SCRAM_MODULE} required username="registry" password="own";\n'
    )
    with broker(settings) as running:
        inside = running.bootstrap_of("PLAINTEXT")
        set_password(inside, "registry", "own", kind)
        set_password(inside, "joe", "first", kind)
        options = ["--command-config", str(own), "--login", mechanism]
        with registry(running.bootstrap_of("SASL"), *options) as served:
            assert is_let_in(served.url, "joe", "first")
            for user, password in (("joe", "wrong"), ("joe", ""), ("eve", "first"), (None, None)):
                assert not is_let_in(served.url, user, password)
            set_password(inside, "joe", "second", kind)
            wait_until(lambda: is_let_in(served.url, "joe", "second"), "the new password counts", seconds=60)
            wait_until(lambda: not is_let_in(served.url, "joe", "first"), "the old one does not", seconds=60, pause=0.2)
            assert is_let_in(served.url, "joe", "second")
            assert "first" not in served.log_text


def is_let_in(url: str, user: str | None, password: str | None) -> bool:
    with RegistryClient(url, user=user, password=password) as client:
        try:
            client.get("/subjects")
        except RegistryError as error:
            if error.status != 401:
                raise
            return False
    return True


@pytest.mark.parametrize(
    ("command", "login"),
    [
        (["registry", "--listen", "0.0.0.0:0"], ["--users"]),
        (["monitor", "--listen", "0.0.0.0:0"], ["--listen-login"]),
    ],
    ids=["registry", "monitor"],
)
def test_a_port_for_other_machines_asks_who_they_are(
    command: list[str], login: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing listens: these are refused before."""
    users = str(write_users(tmp_path / "users", [("joe", "secret")]))
    for options, said in (([], "asks nobody who they are"), ([*login, users], "passwords would go there in clear")):
        assert main([*command, *options]) == 1
        told = capsys.readouterr().err
        assert said in told
        assert "--allow-unauthenticated" in told


@pytest.mark.parametrize("command", ["up", "cluster"])
def test_nor_does_one_beside_a_broker(command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    more = ["--zookeeper", "127.0.0.1:1"] if command == "cluster" else []
    assert main([command, "--registry", "0.0.0.0:0", "--data", str(tmp_path / "data"), *more]) == 1
    assert "ottla.allow.unauthenticated.listeners=true" in capsys.readouterr().err
