"""Documents of a signed store are believed only with a signature of their own, by the key."""

from __future__ import annotations

from pathlib import Path

import pytest

from loader.errors import StagedDataError, UsageError
from loader.staging.chain import RunRecord
from loader.store.local import LocalStore
from loader.store.registry import open_store
from loader.store.signed_store import SignedStore

KEY = "0123456789abcdef"


@pytest.fixture
def plain(tmp_path: Path) -> LocalStore:
    return LocalStore(f"file://{tmp_path}")


@pytest.fixture
def signed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SignedStore:
    monkeypatch.setenv("STAGING_KEY", KEY)
    found = open_store(f"file://{tmp_path}#signed=env:STAGING_KEY")
    assert isinstance(found, SignedStore)
    return found


def test_what_it_writes_it_reads_back_and_others_see_that_it_is_signed(signed: SignedStore, plain: LocalStore) -> None:
    document = RunRecord(start_seqno=5).canonical()
    assert signed.create("shop/a.json", document)
    assert not signed.create("shop/a.json", b"{}")
    with signed.writing("shop/b.json") as sink:
        sink.write(document[:5])
        sink.write(document[5:])
    signed.create("shop/part.csv", b"I,1\n")
    assert signed.get("shop/a.json") == signed.get("shop/b.json") == document
    assert plain.get("shop/a.json") != plain.get("shop/b.json")
    assert plain.get("shop/part.csv") == signed.get("shop/part.csv") == b"I,1\n"
    with signed.reading("shop/a.json") as file:
        assert file.read() == document
    with pytest.raises(StagedDataError, match="it is signed") as caught:
        RunRecord.read(plain.get("shop/a.json"), "shop/a.json")
    assert "staging.signing_key" in caught.value.hint
    again = open_store(signed.root)
    assert again.get("shop/a.json") == document


def test_what_others_write_change_or_move_is_refused(signed: SignedStore, plain: LocalStore) -> None:
    signed.create("shop/a.json", b'{"start":1}')
    data = plain.get("shop/a.json")
    plain.create("shop/moved.json", data)
    plain.create("shop/changed.json", data.replace(b"1", b"2", 1))
    plain.create("shop/cut.json", data[:-1])
    other = SignedStore(plain, b"another key of 16", "")
    other.create("shop/other.json", b"{}")
    for name in ("moved", "changed", "cut", "other"):
        with pytest.raises(StagedDataError, match="the signature of a staged document is wrong"):
            signed.get(f"shop/{name}.json")
        with pytest.raises(StagedDataError, match="the signature of a staged document is wrong"):
            signed.sign(f"shop/{name}.json")
    plain.create("shop/own.json", b"{}")
    for _ in range(2):
        with pytest.raises(StagedDataError, match="is not signed") as caught:
            signed.get("shop/own.json")
    assert "loader staged sign" in caught.value.hint


def test_what_was_there_before_the_key_is_signed_once(signed: SignedStore, plain: LocalStore) -> None:
    plain.create("shop/own.json", b"{}")
    assert [signed.sign("shop/own.json") for _ in range(2)] == [True, False]
    assert signed.get("shop/own.json") == b"{}"


def test_a_key_that_is_short_or_not_there_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match="STAGING_KEY is not set"):
        open_store(f"file://{tmp_path}#signed=env:STAGING_KEY")
    monkeypatch.setenv("STAGING_KEY", "short")
    with pytest.raises(UsageError, match="too short"):
        open_store(f"file://{tmp_path}#signed=env:STAGING_KEY")
