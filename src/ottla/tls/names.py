"""The name of a certificate's owner, in the form that Java gives it and that rules and ACLs are written for.

RFC 2253: the last part first, joined by commas without a space. Attributes that the RFC has no short word for are
written by their number and their DER bytes in hexadecimal, as Java does.
"""

from cryptography import x509
from cryptography.x509.oid import NameOID

_WORDS = {
    NameOID.COMMON_NAME: "CN",
    NameOID.LOCALITY_NAME: "L",
    NameOID.STATE_OR_PROVINCE_NAME: "ST",
    NameOID.ORGANIZATION_NAME: "O",
    NameOID.ORGANIZATIONAL_UNIT_NAME: "OU",
    NameOID.COUNTRY_NAME: "C",
    NameOID.STREET_ADDRESS: "STREET",
    NameOID.DOMAIN_COMPONENT: "DC",
    NameOID.USER_ID: "UID",
}
_ESCAPED = frozenset(',+"\\<>;')
_TAGS = {
    "UTF8String": 12,
    "PrintableString": 19,
    "IA5String": 22,
    "T61String": 20,
    "BMPString": 30,
    "UniversalString": 28,
    "NumericString": 18,
    "VisibleString": 26,
}
_WIDE = {"BMPString": "utf-16-be", "UniversalString": "utf-32-be", "T61String": "latin-1"}


def distinguished_name(name: x509.Name) -> str:
    """`CN=alice,OU=ops,O=Example,C=CH`"""
    return ",".join("+".join(_attribute(one) for one in part) for part in reversed(name.rdns))


def owner_of(der: bytes) -> str:
    """The name of the owner of this certificate."""
    return distinguished_name(x509.load_der_x509_certificate(der).subject)


def alternative_names(certificate: x509.Certificate) -> frozenset[str]:
    """The subject alternative names, each with its kind."""
    try:
        extension = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName)
    except x509.ExtensionNotFound:
        return frozenset()
    return frozenset(f"{type(one).__name__}:{one.value}" for one in extension.value)


def _attribute(attribute: x509.NameAttribute[str | bytes]) -> str:
    word = _WORDS.get(attribute.oid)
    if word is None or not isinstance(attribute.value, str):
        return f"{attribute.oid.dotted_string}=#{_der(attribute).hex()}"
    return f"{word}={_escaped(attribute.value)}"


def _escaped(value: str) -> str:
    text = "".join(f"\\{letter}" if letter in _ESCAPED else letter for letter in value)
    if text.startswith(("#", " ")):
        text = f"\\{text}"
    if text.endswith(" ") and len(text) > 1:
        text = f"{text[:-1]}\\ "
    return text


def _der(attribute: x509.NameAttribute[str | bytes]) -> bytes:
    """The value as the certificate has it: tag, length, bytes."""
    kind = attribute._type.name
    if isinstance(attribute.value, bytes):
        content, tag = attribute.value, 3  # a bit string, the only kind that comes as bytes
    else:
        content, tag = attribute.value.encode(_WIDE.get(kind, "utf-8")), _TAGS.get(kind, 12)
    size = len(content)
    if size < 128:
        return bytes((tag, size)) + content
    length = size.to_bytes((size.bit_length() + 7) // 8, "big")
    return bytes((tag, 0x80 | len(length))) + length + content
