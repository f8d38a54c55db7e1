"""Checks tokens of OAUTHBEARER by the settings of a listener, with the keys of its issuer."""

from collections.abc import Callable

from ottla.broker.security.sasl.oauthbearer import BadToken
from ottla.config.sasl import SaslSettings
from ottla.security import jwt
from ottla.security.holder import Holder
from ottla.security.jwks import KeyKeeper, KeySource


class OAuthTokens:
    """Issuers are few and listeners share them: who asks for the same keys gets the same keeper."""

    def __init__(self) -> None:
        self._keepers: dict[KeySource, KeyKeeper] = {}

    async def stop(self) -> None:
        for keeper in self._keepers.values():
            await keeper.stop()

    def verifier(self, own: SaslSettings) -> Callable[[str, int], Holder | BadToken]:
        """`own` are the settings as a listener has them for OAUTHBEARER."""
        rules = jwt.TokenRules(
            own.sasl_oauthbearer_expected_issuer,
            own.sasl_oauthbearer_expected_audience,
            own.sasl_oauthbearer_clock_skew_seconds,
            own.sasl_oauthbearer_sub_claim_name,
            own.sasl_oauthbearer_scope_claim_name,
        )
        keeper = self.keeper(own)

        def verify(token: str, now_ms: int) -> Holder | BadToken:
            if keeper is None:
                return _as_verdict(lambda: jwt.check_unsigned(token, rules, now_ms))
            return _as_verdict(lambda: jwt.check_signed(token, keeper.keys, rules, now_ms, keeper.missing))

        return verify

    def keeper(self, own: SaslSettings) -> KeyKeeper | None:
        """Who keeps the keys; None where unsigned tokens are accepted instead of signed ones."""
        if own.sasl_oauthbearer_jwks_endpoint_url is None:
            assert own.sasl_oauthbearer_unsafe_accept_unsigned_tokens, "nobody is let in for want of a setting"
            return None
        source = KeySource(
            own.sasl_oauthbearer_jwks_endpoint_url,
            own.sasl_oauthbearer_jwks_endpoint_refresh_ms / 1000,
            own.sasl_oauthbearer_jwks_endpoint_retry_backoff_ms / 1000,
            own.sasl_oauthbearer_jwks_endpoint_retry_backoff_max_ms / 1000,
        )
        keeper = self._keepers.get(source)
        if keeper is None:
            keeper = self._keepers[source] = KeyKeeper(source)
            keeper.start()
        return keeper


def _as_verdict(check: Callable[[], Holder]) -> Holder | BadToken:
    try:
        return check()
    except jwt.Untrusted as refusal:
        return BadToken(str(refusal))
