"""From principals to users: rules as Kafka has them."""

import pytest

from ottla.config.kerberos_rules import BadRule, local_name, read_rules

REALM = "EXAMPLE.ORG"


@pytest.mark.parametrize(
    ("rules", "principal", "user"),
    [
        (["DEFAULT"], "alice@EXAMPLE.ORG", "alice"),
        (["DEFAULT"], "kafka/host.example@EXAMPLE.ORG", "kafka"),
        (["DEFAULT"], "alice@OTHER.ORG", None),
        (["RULE:[1:$1]"], "alice@OTHER.ORG", "alice"),
        (["RULE:[1:$1]"], "alice/admin@OTHER.ORG", None),
        (["RULE:[2:$1]"], "alice/admin@OTHER.ORG", "alice"),
        (["RULE:[2:$1-$2]"], "alice/admin@OTHER.ORG", "alice-admin"),
        (["RULE:[1:$1@$0](.*@OTHER.ORG)s/@.*//", "DEFAULT"], "alice@OTHER.ORG", "alice"),
        (["RULE:[1:$1@$0](.*@OTHER.ORG)s/@.*//", "DEFAULT"], "alice@EXAMPLE.ORG", "alice"),
        (["RULE:[1:$1@$0](.*@OTHER.ORG)s/@.*//", "DEFAULT"], "alice@THIRD.ORG", None),
        (["RULE:[1:$1@$0](a.*)s/a/x/g", "DEFAULT"], "abba@EXAMPLE.ORG", None),  # it is no simple name: @ is in it
        (["RULE:[1:$1](a.*)s/a/x/g", "DEFAULT"], "abba@EXAMPLE.ORG", "xbbx"),
        (["RULE:[1:$1](a.*)s/a/x/", "DEFAULT"], "abba@EXAMPLE.ORG", "xbba"),
        (["RULE:[1:$1](.*)s/(.)(.*)/$2$1/"], "abc@EXAMPLE.ORG", "bca"),
        (["RULE:[1:$1]/L"], "Alice@EXAMPLE.ORG", "alice"),
        (["RULE:[1:$1](.*)s/x/y//U"], "Alice@EXAMPLE.ORG", "ALICE"),
        (["RULE:[1:$1]"], "alice", None),
        (["RULE:[1:$1]"], "a/b/c@EXAMPLE.ORG", None),
        ([], "alice@EXAMPLE.ORG", None),
    ],
)
def test_the_first_rule_that_has_a_name_counts(rules: list[str], principal: str, user: str | None) -> None:
    assert local_name(principal, read_rules(rules), REALM) == user


@pytest.mark.parametrize("text", ["default", "RULE:", "RULE:[1:$2]", "RULE:[1:$1](()", "RULE:[1:$1](a)s/a/$1/"])
def test_rules_that_are_none(text: str) -> None:
    with pytest.raises(BadRule):
        read_rules([text])
