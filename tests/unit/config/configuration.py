"""A small configuration, and what loading it says."""

from __future__ import annotations

from pathlib import Path

import pytest

from loader.config.file import Config, load_config
from loader.errors import UsageError

GOOD = """
[staging]
root = "file:///data/staging/"

[warehouse]
path = "file:///data/warehouse"

[spark]
jars = "/opt/jars"

[sources.shop]
host = "db.example.org"
user = "loader"
password = "env:SHOP_PASSWORD"
tables = { include = ["shop.*"], exclude = ["shop.tmp_*"] }
"""


TWO = (
    GOOD
    + """
[sources.crm]
host = "DB.example.org"
port = 3307
user = "reader"
tables = { include = ["crm.*"] }
transport = "file"
log_files = "/etc/mysql/my.cnf"
"""
)


def loaded(file: Path, text: str) -> Config:
    file.write_text(text, encoding="utf-8")
    return load_config(str(file))


def complaint(file: Path, text: str) -> str:
    with pytest.raises(UsageError) as caught:
        loaded(file, text)
    assert caught.value.exit_code == 2
    assert caught.value.where == {"file": str(file)}
    return caught.value.why
