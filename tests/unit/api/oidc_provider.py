"""A small identity provider (OpenID Connect) on real HTTP. It makes the checks of a real provider, and can be set to give wrong
answers.
"""

from __future__ import annotations

import base64
import hashlib
import json
import secrets
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

from joserfc import jwt
from joserfc.jwk import KeySet, OctKey, RSAKey

CLIENT, SECRET = "tradewind", "s3cret/with:signs"


class OidcServer:
    """The provider. A person logs in without a form.

    Attributes:
        claims: the claims of the person in the ID token.
        userinfo: the answer of the userinfo endpoint; if it has no `sub`, that of the person is added.
        change: changes the claims of the ID token before it is signed.
        requests: paths of the requests, in their order.
    """

    def __init__(self, now: Callable[[], int]) -> None:
        self.now = now
        self.claims: dict[str, Any] = {
            "sub": "4711",
            "preferred_username": "ann",
            "email": "ann@example.com",
            "name": "Ann Lee",
        }
        self.userinfo: dict[str, Any] = {}
        self.change: Callable[[dict[str, Any]], dict[str, Any]] = dict
        self.metadata: dict[str, Any] = {}
        self.algorithm = "RS256"
        self.requests: list[str] = []
        self.public_client = False
        self._codes: dict[str, dict[str, str]] = {}
        self.new_keys()
        provider = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                provider._answer(self, {})

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"])).decode()
                provider._answer(self, {name: values[0] for name, values in parse_qs(body).items()})

            def log_message(self, *args: object) -> None: ...

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.issuer = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def new_keys(self, kid: str | None = None) -> None:
        """Sign with another key from now on; the old one is not published any more."""
        self.key = RSAKey.generate_key(2048, {"use": "sig", "alg": "RS256", "kid": kid or secrets.token_hex(4)})

    def log_in(self, url: str) -> str:
        """Do what the browser does at the provider. Returns the address to which the provider sends the browser back."""
        query = {name: values[0] for name, values in parse_qs(urlsplit(url).query).items()}
        assert url.startswith(f"{self.issuer}/authorize?")
        assert query["response_type"] == "code"
        assert query["client_id"] == CLIENT
        assert query["code_challenge_method"] == "S256"
        assert "openid" in query["scope"].split()
        code = secrets.token_urlsafe(8)
        self._codes[code] = query
        back = {"code": code, "state": query["state"], "session_state": "x", "iss": self.issuer}
        return f"{query['redirect_uri']}?{urlencode(back)}"

    def _answer(self, request: BaseHTTPRequestHandler, form: dict[str, str]) -> None:
        path = urlsplit(request.path).path
        self.requests.append(path)
        answers: dict[str, Callable[[], Any]] = {
            "/.well-known/openid-configuration": self._document,
            "/keys": lambda: KeySet([self.key]).as_dict(),
            "/token": lambda: self._tokens(form, request.headers.get("Authorization", "")),
            "/userinfo": lambda: {"sub": self.claims["sub"], **self.userinfo},
        }
        body = answers[path]() if path in answers else {"error": "not found"}
        status = 400 if "error" in body else 200
        content = json.dumps(body).encode()
        request.send_response(status)
        request.send_header("Content-Type", "application/json")
        request.send_header("Content-Length", str(len(content)))
        request.end_headers()
        request.wfile.write(content)

    def _document(self) -> Any:
        return {
            "issuer": self.issuer,
            "authorization_endpoint": f"{self.issuer}/authorize",
            "token_endpoint": f"{self.issuer}/token",
            "jwks_uri": f"{self.issuer}/keys",
            "userinfo_endpoint": f"{self.issuer}/userinfo",
            "end_session_endpoint": f"{self.issuer}/end",
            **self.metadata,
        }

    def _tokens(self, form: dict[str, str], authorization: str) -> Any:
        asked = self._codes.pop(form.get("code", ""), None)
        challenge = (
            base64.urlsafe_b64encode(hashlib.sha256(form.get("code_verifier", "").encode()).digest()).rstrip(b"=").decode()
        )
        if asked is None or asked["code_challenge"] != challenge or form["redirect_uri"] != asked["redirect_uri"]:
            return {"error": "invalid_grant", "error_description": "the code is not valid <b>here</b>"}
        if not self._knows_client(form, authorization):
            return {"error": "invalid_client"}
        now = self.now() // 1_000_000
        claims = {**self.claims, "iss": self.issuer, "aud": CLIENT, "iat": now, "exp": now + 60, "nonce": asked["nonce"]}
        key = OctKey.import_key(SECRET * 4) if self.algorithm == "HS256" else self.key
        header = {"alg": self.algorithm, "kid": self.key.kid}
        token = jwt.encode(header, self.change(claims), key, algorithms=[self.algorithm])
        return {"access_token": "at", "token_type": "Bearer", "id_token": token}

    def _knows_client(self, form: dict[str, str], authorization: str) -> bool:
        if self.public_client:
            return form.get("client_id") == CLIENT and not authorization
        if "client_secret_post" in self.metadata.get("token_endpoint_auth_methods_supported", ()):
            return (form.get("client_id"), form.get("client_secret")) == (CLIENT, SECRET)
        pair = base64.b64decode(authorization.removeprefix("Basic ")).decode()
        return pair == f"{CLIENT}:s3cret%2Fwith%3Asigns"
