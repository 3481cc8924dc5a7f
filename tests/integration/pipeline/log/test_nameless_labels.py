"""Labels of ENUM and SET in logs without names of columns."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from infra.servers import Server
from tests.integration.pipeline.log.nameless import begun_after

pytestmark = pytest.mark.integration


@pytest.mark.parametrize(("kind", "metadata"), [("mysql", "MINIMAL"), ("mariadb", "NO_LOG")])
def test_labels_that_the_catalog_does_not_show(
    kind: str, metadata: str, fresh_server: Callable[..., Server], tmp_path: Path
) -> None:
    """It shows `?` for characters beyond U+FFFF, and the log has numbers."""
    server = fresh_server(kind, {"binlog_row_metadata": metadata})
    shop = begun_after(
        server,
        metadata,
        tmp_path,
        "SET NAMES utf8mb4",
        "CREATE TABLE nameless.thumbs (id INT PRIMARY KEY, e ENUM('👍', '👎')) CHARACTER SET utf8mb4",
        "CREATE TABLE nameless.plain (id INT PRIMARY KEY, e ENUM('yes', 'é')) CHARACTER SET utf8mb4",
    )
    shop.run("INSERT INTO nameless.thumbs VALUES (1, 2)\nINSERT INTO nameless.plain VALUES (1, 2)")
    manifest = shop.delta()
    assert [one.table for one in manifest.left_out] == ["nameless.thumbs"]
    assert "the server shows ? for characters beyond U+FFFF in the labels of e" in manifest.left_out[0].why
    assert [file.rows for file in manifest.files] == [1]
