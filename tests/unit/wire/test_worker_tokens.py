"""Worker tokens and attempt tokens: only what was signed with the key is accepted."""

from __future__ import annotations

import pytest

from tradewind.wire.worker_tokens import (
    RELAY_SECONDS,
    TokenRefused,
    WorkerGrant,
    attempt_token,
    check_relay_token,
    proves,
    read_grant,
    relay_token,
    sign_grant,
    unchecked_grant,
)

KEY, OTHER_KEY = b"k" * 32, b"o" * 32
GRANT = WorkerGrant("etl-1", ("gpu", "default"), issued=10, expires=1000)


def test_a_token_says_what_was_signed() -> None:
    token = sign_grant(GRANT, KEY)
    assert read_grant(token, KEY, now=999) == GRANT
    assert unchecked_grant(token) == GRANT


def test_an_expired_token_is_refused() -> None:
    with pytest.raises(TokenRefused, match="etl-1 has expired"):
        read_grant(sign_grant(GRANT, KEY), KEY, now=1000)


def test_a_token_of_another_key_is_refused() -> None:
    with pytest.raises(TokenRefused, match="another key"):
        read_grant(sign_grant(GRANT, OTHER_KEY), KEY, now=0)


def test_changed_claims_are_refused() -> None:
    """The claims of one token with the signature of another."""
    prefix, _, signature = sign_grant(GRANT, KEY).split(".")
    _, claims, _ = sign_grant(WorkerGrant("etl-2"), KEY).split(".")
    with pytest.raises(TokenRefused, match="another key"):
        read_grant(f"{prefix}.{claims}.{signature}", KEY, now=0)


@pytest.mark.parametrize("text", ["", "tww1", "tww1.x", "jwt.a.b", "tww1.%%%.x", "tww1.e30.x", "tww1.bm8.x"])
def test_other_texts_are_refused_with_a_sentence(text: str) -> None:
    with pytest.raises(TokenRefused, match=r"no worker token|damaged"):
        read_grant(text, KEY, now=0)


def test_an_attempt_token_proves_one_attempt_of_one_worker() -> None:
    token = attempt_token(KEY, "etl-1@remote", (7, 3, 2))
    assert proves(KEY, "etl-1@remote", (7, 3, 2), token)
    assert not proves(KEY, "etl-1@remote", (7, 3, 3), token)
    assert not proves(KEY, "etl-2@remote", (7, 3, 2), token)
    assert not proves(OTHER_KEY, "etl-1@remote", (7, 3, 2), token)
    assert not proves(KEY, "etl-1@remote", (7, 3, 2), "täglich")


def test_a_relay_token_is_valid_for_minutes_and_for_one_key() -> None:
    now = 1_000_000_000_000
    token = relay_token(KEY, now)
    check_relay_token(token, KEY, now + RELAY_SECONDS * 1_000_000)
    check_relay_token(token, KEY, now - RELAY_SECONDS * 1_000_000)
    with pytest.raises(TokenRefused, match="clocks"):
        check_relay_token(token, KEY, now + RELAY_SECONDS * 1_000_000 + 1)
    with pytest.raises(TokenRefused, match="another worker"):
        check_relay_token(token, OTHER_KEY, now)
    with pytest.raises(TokenRefused, match="another worker"):
        check_relay_token(token.replace("00", "01", 1), KEY, now)


@pytest.mark.parametrize("text", ["", "tws1", "tws1.x.y", sign_grant(GRANT, KEY)])
def test_other_texts_are_no_relay_token(text: str) -> None:
    with pytest.raises(TokenRefused, match="only a standby scheduler"):
        check_relay_token(text, KEY, 0)
