"""Names of certificates' owners as Java writes them (RFC 2253)."""

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID

from ottla.tls.authority import make_authority
from ottla.tls.names import alternative_names, distinguished_name, owner_of


def name(*parts: tuple[x509.ObjectIdentifier, str]) -> x509.Name:
    return x509.Name([x509.NameAttribute(oid, text) for oid, text in parts])


def test_the_last_part_comes_first() -> None:
    subject = name(
        (NameOID.COUNTRY_NAME, "CH"),
        (NameOID.STATE_OR_PROVINCE_NAME, "Bern"),
        (NameOID.LOCALITY_NAME, "Thun"),
        (NameOID.ORGANIZATION_NAME, "Example"),
        (NameOID.ORGANIZATIONAL_UNIT_NAME, "Ops"),
        (NameOID.COMMON_NAME, "alice"),
    )
    assert distinguished_name(subject) == "CN=alice,OU=Ops,O=Example,L=Thun,ST=Bern,C=CH"


@pytest.mark.parametrize(
    ("value", "written"),
    [
        ("Example, Inc.", r"Example\, Inc."),
        ("a+b", r"a\+b"),
        ('say "hi"', r"say \"hi\""),
        ("#1", r"\#1"),
        (" spaces ", r"\ spaces\ "),
        ("back\\slash", r"back\\slash"),
        ("Zoë", "Zoë"),
    ],
)
def test_what_is_escaped(value: str, written: str) -> None:
    assert distinguished_name(name((NameOID.COMMON_NAME, value))) == f"CN={written}"


def test_parts_with_several_attributes_stay_together() -> None:
    both = x509.RelativeDistinguishedName(
        [x509.NameAttribute(NameOID.COMMON_NAME, "a"), x509.NameAttribute(NameOID.USER_ID, "b")]
    )
    assert distinguished_name(x509.Name([both])) in ("CN=a+UID=b", "UID=b+CN=a")


def test_an_attribute_without_a_word_is_its_number_and_its_bytes() -> None:
    subject = name((NameOID.EMAIL_ADDRESS, "a@b.ch"), (NameOID.COMMON_NAME, "alice"))
    assert distinguished_name(subject) == "CN=alice,1.2.840.113549.1.9.1=#16066140622e6368"


def test_the_owner_of_a_certificate_and_its_hosts() -> None:
    keys = make_authority().issue("broker", ["localhost", "127.0.0.1"])
    assert owner_of(keys.certificate.public_bytes(Encoding.DER)) == "CN=broker"
    assert alternative_names(keys.certificate) == {"DNSName:localhost", "IPAddress:127.0.0.1"}
    assert alternative_names(make_authority().certificate) == frozenset()
