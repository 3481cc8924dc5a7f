"""Requests with a delegation token of HDFS, without a server."""

from __future__ import annotations

import logging
from types import SimpleNamespace

import pytest

from loader import secret
from loader.secret import keep_secrets
from loader.store.delegation import Delegated, keep_tokens_out_of_logs, kept_token, token_reference, without_tokens

WEB = "http://names:9870"


@pytest.mark.parametrize(
    ("query", "sent"),
    [
        ("op=OPEN&user.name=etl", "op=OPEN&delegation=TOKEN"),
        ("", "delegation=TOKEN"),
        ("op=OPEN&delegation=OF_THE_NAME_NODE&offset=0", "op=OPEN&delegation=OF_THE_NAME_NODE&offset=0"),
    ],
)
def test_a_request_gets_the_token_instead_of_a_user(query: str, sent: str) -> None:
    request = SimpleNamespace(url=f"{WEB}/webhdfs/v1/a?{query}")
    assert Delegated("TOKEN")(request) is request
    assert request.url == f"{WEB}/webhdfs/v1/a?{sent}"


def test_a_token_is_kept_for_the_addresses_of_its_name_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(secret, "_RESOLVED", {})
    keep_secrets({token_reference(WEB): "TOKEN"})
    assert (kept_token(WEB), kept_token("http://others:9870")) == ("TOKEN", "")


def test_texts_and_logs_have_no_tokens() -> None:
    text = without_tokens("url: /a?op=CREATE&delegation=AbC-_1&overwrite=false (PUT /?token=AbC)")
    assert text == "url: /a?op=CREATE&delegation=...&overwrite=false (PUT /?token=...)"
    for _ in range(2):
        keep_tokens_out_of_logs()
    logger = logging.getLogger("urllib3.connectionpool")
    assert len(logger.filters) == 1
    record = logger.makeRecord(logger.name, logging.DEBUG, "", 0, '%s "%s %s"', (WEB, "GET", "/a?delegation=AbC"), None)
    assert logger.filter(record)
    assert record.getMessage() == f'{WEB} "GET /a?delegation=..."'
