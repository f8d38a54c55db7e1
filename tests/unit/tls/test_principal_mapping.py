"""ssl.principal.mapping.rules as Kafka reads and applies them."""

import pytest

from ottla.tls.principal_mapping import BadRules, principal_name, read_rules

ALICE = "CN=Alice,OU=ServiceUsers,O=Unknown,L=Unknown,ST=Unknown,C=Unknown"


@pytest.mark.parametrize(
    ("rules", "name", "mapped"),
    [
        ("DEFAULT", ALICE, ALICE),
        ("", ALICE, ALICE),
        ("RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/", ALICE, "Alice"),
        ("RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/L", ALICE, "alice"),
        ("RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/U", ALICE, "ALICE"),
        ("RULE:^CN=(.*?),OU=(.*?),O=(.*?),.*$/$1@$2/L, DEFAULT", ALICE, "alice@serviceusers"),
        ("RULE:^CN=(.*?),OU=Others.*$/$1/, RULE:^.*[Cc][Nn]=([a-zA-Z0-9.]*).*$/$1/L,DEFAULT", ALICE, "alice"),
        ("RULE:^CN=(.*?),OU=Others.*$/$1/,DEFAULT", ALICE, ALICE),
        ("RULE:^CN=(.*?),OU=Others.*$/$1/", ALICE, None),
        ("RULE:CN=Alice/bob/", ALICE, None),  # the whole name must match
        (r"RULE:^cn=(.*?),ou=(.*?),dc=(.*?),dc=(.*?)$/$1@$2.$3\/$4/", "cn=a,ou=b,dc=c,dc=d", "a@b.c/d"),
        (r"RULE:^CN=(?<who>[^,]*).*$/\$1 $1 $9/", "CN=x,O=y", "$1 x $9"),
        ("RULE:^CN=(.*?)(,UID=(.*))?$/$1-$3/", "CN=x", "x-"),
        ("RULE:(.)(.)(.)(.)(.)(.)(.)(.)(.)(.)(.)/$11$12/", "abcdefghijk", "ka2"),
    ],
)
def test_rules(rules: str, name: str, mapped: str | None) -> None:
    assert principal_name(name, read_rules(rules)) == mapped


@pytest.mark.parametrize("rules", ["nonsense", "RULE:a/b", "RULE:(/b/", "DEFAULT,rule:a/b/", "RULE:a/b/X"])
def test_what_is_no_rule(rules: str) -> None:
    with pytest.raises(BadRules):
        read_rules(rules)
