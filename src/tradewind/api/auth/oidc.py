"""Logins at an identity provider by OpenID Connect: authorization code with PKCE.

    browser ─▶ /auth/oidc/login ─▶ provider: the person logs in there ─▶ /auth/oidc/callback?code=…
    callback: the code, with the verifier ─▶ token endpoint ─▶ ID token: signature, issuer, audience, nonce and time are checked

The addresses and the keys of the provider come from its discovery document. Both are cached for an hour. When a token has an
unknown key, the keys are read again, because providers change their keys.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import ssl
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode, urlsplit

from tradewind.api.auth.external_accounts import Person
from tradewind.api.auth.login_attempt import LoginAttempt
from tradewind.api.config import OidcConfig
from tradewind.model.errors import ConfigError, LoginRefused, Unreachable, WireError
from tradewind.model.moments import HOUR, SECOND
from tradewind.observe.log import Log
from tradewind.platform.clock import Clock

if TYPE_CHECKING:
    import httpx
    from joserfc.jwk import KeySet

ALGORITHMS = ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "Ed25519", "EdDSA"]
"""Signatures with a public key. A token that is signed with a shared secret, or not at all, is refused."""

CALLBACK = "/auth/oidc/callback"
"""Path of this server to which the provider sends the browser back."""

LOGINS_AT_ONCE = 2
"""How many logins may ask the provider at the same time. A slow provider must not occupy all threads of the API."""
_TIMEOUT_SECONDS = 5.0
_ANSWER_SECONDS = 10 * SECOND
_ANSWER_MAX = 1024 * 1024
_KEPT_FOR = HOUR
_KEYS_AGAIN_AFTER = 10 * SECOND
_LEEWAY_SECONDS = 60
"""The largest accepted difference between the provider's clock and this one."""
_TOKEN_MAX = 64 * 1024
HINT_MAX = 8 * 1024
"""Maximum length of an ID token that is kept for the logout."""
_SCOPE = "openid"

_log = Log("api")


class OidcProvider:
    """See the module. Safe for several threads."""

    def __init__(self, config: OidcConfig, clock: Clock) -> None:
        self.config = config
        self._clock = clock
        self._lock = threading.Lock()
        self._slots = threading.BoundedSemaphore(LOGINS_AT_ONCE)
        self._client: httpx.Client | None = None
        self._metadata: tuple[int, dict[str, Any]] | None = None
        self._keys: tuple[int, KeySet] | None = None

    def close(self) -> None:
        with self._lock:
            if self._client is not None:
                self._client.close()
                self._client = None

    def login_url(self, attempt: LoginAttempt) -> str:
        """The address of the provider where the person logs in. Raises Unreachable, WireError, ConfigError."""
        metadata = self.metadata()
        challenge = base64.urlsafe_b64encode(hashlib.sha256(attempt.verifier.encode()).digest()).rstrip(b"=").decode()
        query = {
            "response_type": "code",
            "client_id": self.config.client_id,
            "redirect_uri": attempt.redirect_uri,
            "scope": self._scopes(),
            "state": attempt.state,
            "nonce": attempt.nonce,
            "code_challenge": challenge,
            "code_challenge_method": "S256",
        }
        return _with_query(metadata["authorization_endpoint"], query)

    def person(self, attempt: LoginAttempt, answer: Mapping[str, str]) -> tuple[Person, str]:
        """(the person who has logged in, the ID token), from the parameters of the request that brings the browser back.

        Raises:
            LoginRefused: the provider refuses the login, or the answer belongs to another login.
            WireError: the provider's answer breaks the protocol.
            Unreachable: the provider does not answer.
            ConfigError: the package httpx is missing, or ca_file cannot be read.
        """
        if not hmac.compare_digest(answer.get("state", "").encode(), attempt.state.encode()):
            raise LoginRefused("This answer belongs to another login. Start the login again.")
        if answer.get("error"):
            _log.warning(
                "the identity provider refuses a login", error=answer["error"], why=answer.get("error_description", "")
            )
            raise LoginRefused(f"The identity provider refuses the login: {answer.get('error_description') or answer['error']}")
        if answer.get("iss", self.config.issuer) != self.config.issuer:
            raise self._protocol_error(f"the answer comes from another issuer: {answer['iss']}")
        if not answer.get("code"):
            raise self._protocol_error("its answer has no code")
        with self._slot():
            tokens = self._tokens(attempt, answer["code"])
            claims = self._claims(tokens.get("id_token"), attempt.nonce)
            found = self._with_userinfo(claims, tokens.get("access_token"))
        return self._described(found), str(tokens["id_token"])

    def logout_url(self, id_token: str, back_to: str) -> str | None:
        """The address where the browser logs out at the provider. None: the provider has no such address, or does not answer."""
        try:
            endpoint = self.metadata().get("end_session_endpoint")
        except (Unreachable, WireError, ConfigError) as error:
            _log.warning("a person logged out here, but the login at the identity provider continues", why=str(error))
            return None
        if not isinstance(endpoint, str):
            return None
        hint = {"id_token_hint": id_token} if id_token else {}
        return _with_query(endpoint, {**hint, "client_id": self.config.client_id, "post_logout_redirect_uri": back_to})

    def check(self) -> str:
        """Read the discovery document and the keys. Returns the result in words. Raises as `person`."""
        self._read_keys()
        return f"{self.config.issuer} answers; people log in at {self.metadata()['authorization_endpoint']}"

    # --- the discovery document and the keys -----------------------------------------------------------------------------

    def metadata(self) -> dict[str, Any]:
        """The discovery document, at most an hour old."""
        with self._lock:
            kept = self._metadata
        if kept is not None and self._clock.monotonic() - kept[0] < _KEPT_FOR:
            return kept[1]
        found = self._json("GET", f"{self.config.issuer.rstrip('/')}/.well-known/openid-configuration")
        if found.get("issuer") != self.config.issuer:
            raise self._protocol_error(
                f"its discovery document names the issuer {found.get('issuer')!r}; set oidc.issuer to exactly this text"
            )
        for name in ("authorization_endpoint", "token_endpoint", "jwks_uri"):
            self._check_address(name, found.get(name))
        for name in ("userinfo_endpoint", "end_session_endpoint"):
            if found.get(name) is not None:
                self._check_address(name, found[name])
        with self._lock:
            self._metadata = (self._clock.monotonic(), found)
        return found

    def _check_address(self, name: str, address: object) -> None:
        if not isinstance(address, str) or not is_private_address(address, self.config.issuer):
            raise self._protocol_error(f"its {name} is {address!r}, which is no https address")

    def _read_keys(self, after: int | None = None) -> KeySet:
        """The keys of the provider. `after`: read the keys again if they were read before this moment, and not within the last
        seconds.
        """
        from joserfc.errors import JoseError  # lazy import: 9 MB that only a login needs
        from joserfc.jwk import KeySet

        now = self._clock.monotonic()
        with self._lock:
            kept = self._keys
        again = kept is None or now - kept[0] >= _KEPT_FOR or (after is not None and now - kept[0] >= _KEYS_AGAIN_AFTER)
        if kept is not None and not again:
            return kept[1]
        document = self._json("GET", self.metadata()["jwks_uri"])
        try:
            keys = KeySet.import_key_set(document)  # type: ignore[arg-type]
        except (JoseError, ValueError, TypeError, KeyError, AttributeError) as error:
            raise self._protocol_error(f"its keys cannot be read ({error})") from error
        with self._lock:
            self._keys = (now, keys)
        return keys

    # --- the exchange of the code ------------------------------------------------------------------------------------------

    def _tokens(self, attempt: LoginAttempt, code: str) -> dict[str, Any]:
        config, metadata = self.config, self.metadata()
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": attempt.redirect_uri,
            "code_verifier": attempt.verifier,
        }
        headers = {}
        methods = metadata.get("token_endpoint_auth_methods_supported") or ["client_secret_basic"]
        if config.client_secret is None:
            form["client_id"] = config.client_id
        elif "client_secret_basic" in methods or "client_secret_post" not in methods:
            pair = f"{quote(config.client_id, safe='')}:{quote(config.client_secret, safe='')}"
            headers["Authorization"] = f"Basic {base64.b64encode(pair.encode()).decode()}"
        else:
            form |= {"client_id": config.client_id, "client_secret": config.client_secret}
        return self._json("POST", metadata["token_endpoint"], form=form, headers=headers)

    def _claims(self, id_token: object, nonce: str) -> dict[str, Any]:
        """The claims of an ID token that is valid for this server and for this attempt."""
        from joserfc import jwt  # lazy import: as above
        from joserfc.errors import InvalidKeyIdError, JoseError

        if not isinstance(id_token, str) or len(id_token) > _TOKEN_MAX:
            raise self._protocol_error("it sends no ID token; oidc.scopes must contain openid")
        rules = jwt.JWTClaimsRegistry(
            now=self._clock.wall() // 1_000_000,
            leeway=_LEEWAY_SECONDS,
            iss={"essential": True, "value": self.config.issuer},
            aud={"essential": True, "value": self.config.client_id},
            sub={"essential": True},
            exp={"essential": True},
            iat={"essential": True},
            nonce={"essential": True, "value": nonce},
        )
        try:
            try:
                found = jwt.decode(id_token, self._read_keys(), algorithms=ALGORITHMS)
            except InvalidKeyIdError:  # the provider may have new keys
                found = jwt.decode(id_token, self._read_keys(after=self._clock.monotonic()), algorithms=ALGORITHMS)
            rules.validate(found.claims)
        except (JoseError, ValueError, TypeError, KeyError, AttributeError) as error:
            raise self._protocol_error(f"its ID token is not valid ({error})") from error
        claims = dict(found.claims)
        audience = claims["aud"]
        several = isinstance(audience, list) and len(audience) > 1
        if claims.get("azp", None if several else self.config.client_id) != self.config.client_id:
            raise self._protocol_error(f"its ID token was made for another client ({claims.get('azp')!r})")
        return claims

    def _with_userinfo(self, claims: dict[str, Any], access_token: object) -> dict[str, Any]:
        """The claims, with those of the userinfo endpoint if the ID token has no name or no groups."""
        needed = [self.config.name_claim, *([self.config.groups_claim] if self.config.groups else [])]
        endpoint = self.metadata().get("userinfo_endpoint")
        if all(claim_of(claims, name) is not None for name in needed) or endpoint is None or not isinstance(access_token, str):
            return claims
        more = self._json("GET", endpoint, headers={"Authorization": f"Bearer {access_token}"})
        if more.get("sub") != claims["sub"]:
            raise self._protocol_error("its userinfo endpoint describes another person than its ID token")
        return {**more, **claims}

    def _described(self, claims: dict[str, Any]) -> Person:
        config = self.config
        name = claim_of(claims, config.name_claim)
        if not isinstance(name, str) or not name.strip():
            raise self._protocol_error(
                f"it sends no claim {config.name_claim!r} (setting: oidc.name_claim). It sends: {', '.join(sorted(claims))}"
            )
        groups = claim_of(claims, config.groups_claim)
        found = groups if isinstance(groups, list) else [] if groups is None else [groups]
        return Person(
            id=f"{config.issuer} {claims['sub']}",
            name=name.strip(),
            email=_text(claims.get("email")),
            full_name=_text(claims.get("name")),
            groups=tuple(one for one in found if isinstance(one, str)),
        )

    # --- requests --------------------------------------------------------------------------------------------------------

    @contextmanager
    def _slot(self) -> Iterator[None]:
        if not self._slots.acquire(timeout=_TIMEOUT_SECONDS):
            raise Unreachable("Too many people log in at this moment; try again.")
        try:
            yield
        finally:
            self._slots.release()

    def _json(
        self, method: str, url: str, form: dict[str, str] | None = None, headers: dict[str, str] | None = None
    ) -> dict[str, Any]:
        """A JSON object of the provider. Redirects are not followed: the form holds secrets."""
        import httpx  # lazy import: optional, the extra oidc; `_opened` has checked that it is there

        ends_at = self._clock.monotonic() + _ANSWER_SECONDS
        body = bytearray()
        try:
            with self._opened().stream(
                method, url, data=form, headers={"Accept": "application/json", **(headers or {})}
            ) as answer:
                for piece in answer.iter_bytes():
                    body += piece
                    if len(body) > _ANSWER_MAX or self._clock.monotonic() > ends_at:
                        raise self._protocol_error(f"the answer of {url} is too long or takes too long")
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            _log.warning("the identity provider cannot be reached", url=url, why=str(error) or type(error).__name__)
            why = str(error) or type(error).__name__
            raise Unreachable(f"The identity provider cannot be reached now: {url}: {why}") from error
        try:
            found = json.loads(bytes(body))
        except ValueError:
            found = None
        if answer.status_code != 200 or not isinstance(found, dict):
            said = found.get("error_description") or found.get("error") if isinstance(found, dict) else None
            raise self._protocol_error(f"{url} answers {answer.status_code}: {_text(said) or 'no JSON object'}")
        return found

    def _opened(self) -> httpx.Client:
        try:
            import httpx  # lazy import: optional, the extra oidc
        except ImportError:
            raise ConfigError(
                "Logins by OpenID Connect need the package httpx. Install it: pip install 'tradewind[oidc]'"
            ) from None
        with self._lock:
            if self._client is None:
                try:
                    context = ssl.create_default_context(cafile=self.config.ca_file)
                except OSError as error:
                    raise ConfigError(f"oidc.ca_file {self.config.ca_file} cannot be read: {error}") from error
                self._client = httpx.Client(timeout=_TIMEOUT_SECONDS, follow_redirects=False, verify=context)
            return self._client

    def _scopes(self) -> str:
        words = self.config.scopes.split()
        return " ".join(words if _SCOPE in words else [_SCOPE, *words])

    def _protocol_error(self, why: str) -> WireError:
        _log.warning("the identity provider's answer cannot be used", issuer=self.config.issuer, why=why)
        return WireError(f"The answer of the identity provider {self.config.issuer} cannot be used: {why}")


def claim_of(claims: Mapping[str, Any], name: str) -> Any:
    """A claim by its name, or by a path with dots: `realm_access.roles`. None: it is missing."""
    if name in claims:
        return claims[name]
    found: Any = claims
    for part in name.split("."):
        if not isinstance(found, Mapping) or part not in found:
            return None
        found = found[part]
    return found


def is_private_address(url: str, issuer: str) -> bool:
    """Whether nobody else can read the traffic: https, or http on this machine if the issuer is on this machine too."""
    parts = urlsplit(url)
    if parts.scheme == "https":
        return bool(parts.netloc)
    return parts.scheme == "http" and is_loopback(parts.hostname or "") and is_loopback(urlsplit(issuer).hostname or "")


def is_loopback(host: str) -> bool:
    """Whether the address is that of this machine."""
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def _with_query(endpoint: str, query: dict[str, str]) -> str:
    return f"{endpoint}{'&' if urlsplit(endpoint).query else '?'}{urlencode(query)}"


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
