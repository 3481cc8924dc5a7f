"""Log files found by their folder, by the server's index file or by its option file: the same bytes."""

from __future__ import annotations

from pathlib import Path

import pytest

from loader.errors import GapError, UsageError
from loader.extract.spec import TransportSettings
from loader.model.position import Interval
from loader.store.local import LocalStore
from loader.transport.base import Transport
from tests.integration.binlog.source import Source, extracted

pytestmark = pytest.mark.integration


def opened(path: Path) -> Transport:
    """What every executor opens: the settings come to it as JSON."""
    settings = TransportSettings(kind="file", path=str(path))
    return TransportSettings.model_validate_json(settings.model_dump_json()).open()


def test_an_interval_over_two_files_has_the_same_bytes_by_every_way(source: Source, tmp_path: Path) -> None:
    source.run("CREATE TABLE IF NOT EXISTS ways (id INT PRIMARY KEY, v TEXT)", "DELETE FROM ways")
    start = source.mark()
    source.run("INSERT INTO ways VALUES (1, 'one'), (2, 'two')", "FLUSH BINARY LOGS")
    source.run("UPDATE ways SET v = 'three' WHERE id = 2", "DELETE FROM ways WHERE id = 1")
    interval = Interval(start, source.mark())
    folder = source.server.log_dir
    index = folder / f"{start.basename}.index"
    (tmp_path / "conf.d").mkdir()
    (tmp_path / "my.cnf").write_text("[client]\ndatadir=/nowhere\n!includedir conf.d\n")
    (tmp_path / "conf.d" / "log.cnf").write_text(
        f"[mysqld]\ndatadir = '{folder}'  # here\nlog-bin={start.basename}\nlog_bin_index={index.name}\n"
    )
    expected = extracted(source, source.network, LocalStore(f"file://{tmp_path}/network"), interval)
    assert [file.rows for file in expected.manifest.files] == [2, 2]
    for way, path in {"folder": folder, "index": index, "option": tmp_path / "my.cnf"}.items():
        found = extracted(source, opened(path), LocalStore(f"file://{tmp_path}/{way}"), interval)
        assert found.files == expected.files
        assert found.manifest == expected.manifest


def test_what_is_no_log_is_refused(source: Source, tmp_path: Path) -> None:
    start = source.mark()
    source.run("FLUSH BINARY LOGS")
    interval = Interval(start, source.mark())
    with pytest.raises(UsageError, match="the path is a single log file, not a log"):
        opened(source.server.log_dir / start.file)
    with pytest.raises(UsageError, match="no such file or folder"):
        opened(tmp_path / "none.cnf")
    (tmp_path / "off.cnf").write_text("[mysqld]\nskip-log-bin\n")
    with pytest.raises(UsageError, match="writes no binary log"):
        opened(tmp_path / "off.cnf")
    short = tmp_path / "log.index"
    short.write_text(f"{source.server.log_dir}/{interval.stop.file}\n")
    with pytest.raises(GapError, match="still needed is gone") as caught:
        opened(short).segments(interval)
    assert caught.value.where == {"file": start.file}
