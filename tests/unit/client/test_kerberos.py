"""Why there is no ticket, in words. Logins themselves need a KDC: compat/test_kerberos.py."""

import pytest

from ottla.client.kerberos import reason

OF_GSSAPI = "Unspecified GSS failure.  Minor code may provide more information"


class Refusal(Exception):
    """As the library's errors are: one code of GSSAPI, one of the mechanism, and texts for both."""

    maj_code, min_code = 851968, 1

    def __init__(self, *of_kerberos: str) -> None:
        self._of_kerberos = list(of_kerberos)

    def get_all_statuses(self, code: int, is_maj: bool) -> list[str]:
        assert code == (self.maj_code if is_maj else self.min_code)
        return [OF_GSSAPI] if is_maj else self._of_kerberos


@pytest.mark.parametrize("said", [(), ("Success",), ("Unknown error",)])
def test_where_kerberos_says_nothing_gssapi_does(said: tuple[str, ...]) -> None:
    assert reason(Refusal(*said)) == "Unspecified GSS failure. Minor code may provide more information"


def test_what_kerberos_says_is_the_reason() -> None:
    assert reason(Refusal("Ticket expired")) == "Ticket expired"
