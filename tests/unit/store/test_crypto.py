"""Encryption of secrets: the right key or a clear error, never plain text."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tradewind.model.errors import ConfigError
from tradewind.store.crypto import Vault, generate_key, open_vault


@pytest.fixture
def key_file(tmp_path: Path) -> str:
    return str(tmp_path / "home" / "fernet.key")


@pytest.mark.parametrize("plain", ["", "s3cret", "päss\nwörd 🌬", "x" * 100_000, "fernet:deadbeef:x"])
def test_an_encrypted_value_can_be_decrypted_and_is_not_readable(plain: str) -> None:
    vault = Vault([generate_key()], "a test")
    stored = vault.encrypt(plain)
    assert vault.decrypt(stored, "variable 'x'") == plain
    assert not plain or plain not in stored
    assert stored.startswith(f"fernet:{vault.key_ids[0]}:")


def test_the_same_value_is_stored_differently_each_time() -> None:
    vault = Vault([generate_key()], "a test")
    assert vault.encrypt("x") != vault.encrypt("x")


def test_rotation_moves_values_from_the_old_key_to_the_new() -> None:
    old, new = generate_key(), generate_key()
    stored = Vault([old], "a test").encrypt("s3cret")
    both = Vault([new, old], "a test")
    assert both.decrypt(stored, "x") == "s3cret"
    assert both.needs_rotation(stored)
    moved = both.rotate(stored, "x")
    assert Vault([new], "a test").decrypt(moved, "x") == "s3cret"
    assert not both.needs_rotation(moved)
    assert both.rotate(moved, "x") is moved


def test_a_missing_key_is_named_and_nothing_is_shown() -> None:
    lost, other = generate_key(), generate_key()
    stored = Vault([lost], "a test").encrypt("s3cret")
    vault = Vault([other], "the key file /k")
    with pytest.raises(ConfigError) as error:
        vault.decrypt(stored, "connection 'warehouse'")
    result = str(error.value)
    assert "connection 'warehouse'" in result
    assert Vault([lost], "").key_ids[0] in result
    assert f"the key file /k holds key {vault.key_ids[0]}" in result
    for secret in (lost, other, "s3cret"):
        assert secret not in result


def test_plain_fernet_tokens_of_airflow_are_read_with_any_key() -> None:
    from cryptography.fernet import Fernet

    keys = [generate_key(), generate_key()]
    token = Fernet(keys[1]).encrypt(b"from airflow").decode()
    vault = Vault(keys, "a test")
    assert vault.decrypt(token, "x") == "from airflow"
    assert vault.needs_rotation(token)


@pytest.mark.parametrize("stored", ["plain text", "", "fernet:", "gAAAAAbroken"])
def test_plain_text_in_the_database_is_refused_not_returned(stored: str) -> None:
    with pytest.raises(ConfigError, match="cannot be decrypted"):
        Vault([generate_key()], "a test").decrypt(stored, "variable 'x'")


def test_a_changed_value_is_refused() -> None:
    vault = Vault([generate_key()], "a test")
    stored = vault.encrypt("s3cret")
    middle = len(stored) // 2
    altered = stored[:middle] + ("A" if stored[middle] != "A" else "B") + stored[middle + 1 :]
    with pytest.raises(ConfigError, match="or changed"):
        vault.decrypt(altered, "variable 'x'")


@pytest.mark.parametrize(
    "key",
    ["short", generate_key()[:-1], generate_key() + "AAAA", "ü" * 44, "=" * 44],
    ids=["short", "cut", "longer", "no ASCII", "only padding"],
)
def test_what_is_not_a_key_is_refused_without_showing_it(key: str) -> None:
    with pytest.raises(ConfigError, match="Key 2 of a test is not a Fernet key") as error:
        Vault([generate_key(), key], "a test")
    assert key not in str(error.value)


def test_the_key_file_is_created_once_for_its_owner_alone(key_file: str) -> None:
    first = open_vault(None, key_file, create=True)
    second = open_vault(None, key_file, create=True)
    assert first.key_ids == second.key_ids
    assert os.stat(key_file).st_mode & 0o777 == 0o600
    assert os.stat(os.path.dirname(key_file)).st_mode & 0o777 == 0o700


def test_a_missing_key_file_is_not_replaced_by_a_new_key(key_file: str) -> None:
    with pytest.raises(ConfigError, match=r"fernet\.key is missing.*backup"):
        open_vault(None, key_file)
    assert not os.path.exists(key_file)


def test_the_setting_comes_before_the_file(key_file: str) -> None:
    in_file = open_vault(None, key_file, create=True)
    new, old = generate_key(), generate_key()
    vault = open_vault(f" {new}, {old},", key_file)
    assert vault.key_ids == Vault([new, old], "").key_ids
    assert in_file.key_ids[0] not in vault.key_ids


def test_a_key_file_may_hold_several_keys_and_notes(key_file: str) -> None:
    new, old = generate_key(), generate_key()
    os.mkdir(os.path.dirname(key_file))
    Path(key_file).touch(mode=0o600)
    Path(key_file).write_text(f"# new since spring\n{new}\n\n{old}\n")
    assert open_vault(None, key_file).key_ids == Vault([new, old], "").key_ids


@pytest.mark.parametrize("mode", [0o604, 0o644, 0o620, 0o601])
def test_a_key_file_that_others_can_read_is_refused(key_file: str, mode: int) -> None:
    open_vault(None, key_file, create=True)
    os.chmod(key_file, mode)
    with pytest.raises(ConfigError, match=rf"mode {mode:04o}.*chmod 600"):
        open_vault(None, key_file)


@pytest.mark.parametrize(("content", "says"), [(b"", "holds no key"), (b"\xff\xfe", "cannot be read")])
def test_an_empty_or_broken_key_file_is_an_error(key_file: str, content: bytes, says: str) -> None:
    open_vault(None, key_file, create=True)
    Path(key_file).write_bytes(content)
    with pytest.raises(ConfigError, match=says):
        open_vault(None, key_file, create=True)


def test_an_empty_setting_does_not_mean_the_file(key_file: str) -> None:
    open_vault(None, key_file, create=True)
    with pytest.raises(ConfigError, match="holds no key"):
        open_vault(" , ", key_file)


def test_a_vault_does_not_print_its_keys() -> None:
    key = generate_key()
    assert key not in repr(Vault([key], "a test"))


def test_cryptography_is_imported_only_for_a_secret() -> None:
    code = (
        "import sys; from tradewind.store.crypto import *; v = Vault([generate_key()], 'a test');"
        "assert not any(m.startswith('cryptography') for m in sys.modules); v.encrypt('x');"
        "assert 'cryptography.fernet' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
