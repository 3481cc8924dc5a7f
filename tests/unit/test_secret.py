"""Secrets by reference, and secrets that the driver of a cluster passes to its executors."""

from __future__ import annotations

import platform
from pathlib import Path

import pytest

from loader import secret
from loader.errors import UsageError
from loader.secret import find_secrets, keep_secrets, read_secret, secret_variable
from loader.store.address import SIGNED


def test_a_variable_that_is_not_set_is_named_with_its_machine() -> None:
    with pytest.raises(UsageError) as refused:
        read_secret("env:ABSENT")
    assert refused.value.what == f"ABSENT is not set on {platform.node()}"
    assert "spark.network.crypto.enabled" in refused.value.hint


def test_references_to_the_environment_are_found(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SHOP", "one")
    monkeypatch.setenv(secret_variable("lake"), "two")
    monkeypatch.setenv("KEY", "three")
    spec = {
        "server": {"password": "env:SHOP", "user": "env", "tls_key": f"file:{tmp_path}"},
        "transport": {"server": {"password": "env:ABSENT"}},
        "staging_root": f"file:///env:SHOP{SIGNED}env:KEY",
        "key": "airflow:lake",
        "catalog": {"secrets": {"token": "env:SHOP"}},
    }
    assert find_secrets(spec, without=["catalog"]) == {
        "env:SHOP": "one", "airflow:lake": "two", "env:KEY": "three",
    }  # fmt: skip
    assert find_secrets({"catalog": spec["catalog"]}) == {"env:SHOP": "one"}


def test_a_secret_that_was_handed_over_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(secret, "_RESOLVED", {})
    keep_secrets({"env:ABSENT": "three"})
    assert read_secret("env:ABSENT") == "three"
    with pytest.raises(UsageError):
        read_secret("env:OTHER")
