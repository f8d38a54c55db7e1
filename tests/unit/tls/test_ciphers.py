"""Cipher suites by their standard names."""

import pytest

from ottla.tls.ciphers import TLS_1_3_SUITES, UnknownSuite, openssl_name, read_suites
from ottla.tls.contexts import Agreement


@pytest.mark.parametrize(
    ("name", "openssl"),
    [
        ("TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", "ECDHE-RSA-AES128-GCM-SHA256"),
        ("TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384", "ECDHE-ECDSA-AES256-GCM-SHA384"),
        ("TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA384", "ECDHE-RSA-AES256-SHA384"),
        ("TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256", "ECDHE-ECDSA-CHACHA20-POLY1305"),
        ("TLS_DHE_RSA_WITH_AES_256_GCM_SHA384", "DHE-RSA-AES256-GCM-SHA384"),
        ("TLS_ECDHE_ECDSA_WITH_AES_128_CCM_8", "ECDHE-ECDSA-AES128-CCM8"),
        ("TLS_RSA_WITH_AES_128_CBC_SHA", "AES128-SHA"),
        ("ECDHE-RSA-AES128-GCM-SHA256", "ECDHE-RSA-AES128-GCM-SHA256"),
    ],
)
def test_names(name: str, openssl: str) -> None:
    assert openssl_name(name) == openssl


@pytest.mark.parametrize("name", ["TLS_RSA_WITH_NOTHING_SHA", "HIGH", "ALL", "", "a:b"])
def test_no_suites(name: str) -> None:
    with pytest.raises(UnknownSuite):
        openssl_name(name)


def test_the_versions_follow_the_suites() -> None:
    both = read_suites(["TLS_AES_256_GCM_SHA384", "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"])
    assert both.more_than_asked == ("TLS_CHACHA20_POLY1305_SHA256", "TLS_AES_128_GCM_SHA256")
    assert Agreement(suites=both).spoken == ("TLSv1.2", "TLSv1.3")
    assert Agreement(suites=read_suites(["TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"])).spoken == ("TLSv1.2",)
    assert Agreement(suites=read_suites(TLS_1_3_SUITES)).spoken == ("TLSv1.3",)
    assert read_suites(TLS_1_3_SUITES).more_than_asked == ()
    assert Agreement(("TLSv1.3", "TLSv1.2")).spoken == ("TLSv1.2", "TLSv1.3")
    assert Agreement(("TLSv1.2",), read_suites(TLS_1_3_SUITES)).spoken == ()
