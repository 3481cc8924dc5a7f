"""Errors say what, where, why and what to do, and keep it across processes."""

from __future__ import annotations

import json
import pickle

import pytest

from loader.errors import (
    BinlogFormatError,
    DataError,
    GapError,
    LoaderError,
    RetryableError,
    SourceUnavailable,
    StagedDataError,
    StoreUnavailable,
    UnsupportedError,
    UsageError,
)
from loader.extract.spec import TransportSettings  # noqa: F401 - its modules define more errors
from loader.source.server_facts import WrongSettings
from loader.staging.chain import NotLoaded
from loader.store.base import ObjectNotFound
from loader.transport.server.connection import AccessDenied

CODES = {
    LoaderError: 1, UsageError: 2, RetryableError: 3, SourceUnavailable: 3, StoreUnavailable: 3, DataError: 4,
    BinlogFormatError: 4, UnsupportedError: 4, GapError: 4, StagedDataError: 4, NotLoaded: 1, ObjectNotFound: 1,
    WrongSettings: 1, AccessDenied: 1,
}  # fmt: skip
KINDS = list(CODES)


@pytest.mark.parametrize("kind", KINDS)
def test_exit_codes_and_whether_a_retry_can_help(kind: type[LoaderError]) -> None:
    error = kind("it broke")
    assert error.exit_code == CODES[kind]
    assert error.retryable == (CODES[kind] == 3)


def test_the_text_has_place_cause_and_cure_in_this_order() -> None:
    error = DataError("it broke", why="the disk", hint="buy one", file="binlog.000001", position=4, table=None)
    assert str(error) == "it broke (file binlog.000001, position 4)\n  why: the disk\n  what to do: buy one"
    assert str(LoaderError("it broke")) == "it broke"
    assert str(LoaderError("it broke", hint="mend it")) == "it broke\n  what to do: mend it"


def test_the_document_of_an_error() -> None:
    error = StoreUnavailable("it broke", why="w", hint="h", key="a/b")
    assert json.loads(json.dumps(error.as_dict())) == {
        "error": "StoreUnavailable", "what": "it broke", "where": {"key": "a/b"}, "why": "w", "hint": "h",
        "retryable": True, "exit_code": 3,
    }  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_an_error_survives_pickling_whole(kind: type[LoaderError]) -> None:
    error = kind("it broke", why="w", hint="h", file="f", position=7)
    again = pickle.loads(pickle.dumps(error))  # noqa: S301 - our own bytes
    assert type(again) is kind
    assert again.as_dict() == error.as_dict()


def test_an_error_of_a_damaged_log_says_how_to_get_past_it() -> None:
    assert BinlogFormatError("it broke").hint == (
        "compare with mysqlbinlog --verify-binlog-checksum; restore the file or load all tables again: loader initial-load --again"
    )
    assert BinlogFormatError("it broke", hint="h").hint == "h"
