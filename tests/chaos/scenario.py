"""What a seed decides before the first statement: server, options, catalog, writers, tables."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from infra.servers import Kind

FEATURES = (
    "renames", "rebuilds", "alters", "keys", "truncates", "drops", "creates", "selects", "shadows", "sessions", "moves", "relations", "partitions", "engines",
    "statements", "names", "documents", "faults", "partial", "file", "s3", "modes",
)  # fmt: skip
"""What `--without` can name."""
LOCAL = "local[2]"


@dataclass(frozen=True)
class Scenario:
    """One run of the test; equal for equal arguments."""

    seed: int
    kind: Kind
    options: dict[str, str | None]
    image: str
    """Of the row images that the writers' sessions log; the server's own is FULL, as the loader asks for."""
    catalog: str
    transport: str
    staging: str
    """Where staged files are: in a folder, or on S3."""
    replicated: bool
    writers: int
    tables: int
    without: frozenset[str]
    faults: tuple[str, ...] = ()
    """Names of the only ones that happen; all by default."""
    master: str = LOCAL
    """Where Spark's jobs run."""
    keeps_columns: bool = False
    """Whether tables that keep more keep the columns that are dropped."""

    @property
    def arguments(self) -> str:
        """The arguments of the command that run it again."""
        without = f" --without {' '.join(sorted(self.without))}" if self.without else ""
        faults = f" --faults {' '.join(self.faults)}" if self.faults else ""
        master = f" --master '{self.master}'" if self.master != LOCAL else ""
        return f"--seed {self.seed} --server {self.kind} --writers {self.writers}{without}{faults}{master}"

    def __str__(self) -> str:
        options = " ".join(f"{name}={value}" for name, value in self.options.items())
        return (
            f"seed {self.seed}: {self.kind} {options}, row images {self.image}, {self.catalog} catalog, {self.transport} transport, staging: {self.staging},"
            f" {'a replica, ' * self.replicated}{'dropped columns are kept, ' * self.keeps_columns}{self.writers} writers, {self.tables} tables"
        )


def scenario(
    seed: int,
    kind: Kind | None = None,
    writers: int = 0,
    without: frozenset[str] = frozenset(),
    faults: tuple[str, ...] = (),
    master: str = LOCAL,
) -> Scenario:
    """Return the scenario of a seed; a kind and a number of writers overrule it."""
    if "faults" not in without:
        without |= {"engines"}  # a kill leaves tables without transactions and their log different
    rng = Random(f"scenario {seed}")
    chosen: Kind = rng.choice(["mysql", "mysql", "mariadb"])
    image = rng.choice(["FULL", "FULL", "MINIMAL", "NOBLOB"])
    names = rng.choice(["FULL", "FULL", "MINIMAL"])
    gtids, replicated = rng.random() < 0.75, rng.random() < 0.5
    several = rng.choice([1, 1, 3])
    found = kind or chosen
    if found == "mariadb" and Random(f"image {seed}").random() < 0.7:
        image = "FULL"  # images that leave columns out stop most tables there
    options: dict[str, str | None] = {"binlog_row_metadata": names}
    if found == "mysql" and not gtids:
        options |= {"gtid_mode": "OFF", "enforce_gtid_consistency": "OFF"}
    options |= _log_options(Random(f"options {seed}"), found)
    replicated = gtids and replicated and "faults" not in without
    if replicated and found == "mariadb":
        options["log_slave_updates"] = "ON"  # servers take over from each other, back and forth
    return Scenario(
        seed=seed,
        kind=found,
        options=options,
        image="FULL" if "partial" in without else image,
        catalog=rng.choice(["hadoop", "sqlite"]),
        transport=rng.choice(["network", "network" if "file" in without else "file"]),
        staging="s3" if "s3" not in without and Random(f"staging {seed}").random() < 0.2 else "folder",
        replicated=replicated,
        writers=writers or several,
        tables=rng.randint(5, 10),
        without=without,
        faults=faults,
        master=master,
        keeps_columns=Random(f"columns {seed}").random() < 0.3,
    )


def _log_options(rng: Random, kind: Kind) -> dict[str, str | None]:
    """How the server writes its log: compressed, without checksums, in many small files or events, with the statements
    of rows, or with an event before and after an ALTER TABLE."""
    found: dict[str, str | None] = {}
    if rng.random() < 0.25:
        found |= (
            {"binlog_transaction_compression": "ON"}
            if kind == "mysql"
            else {"log_bin_compress": "ON", "log_bin_compress_min_len": "10"}
        )
    if rng.random() < 0.15:
        found["binlog_checksum"] = "NONE"
    if rng.random() < 0.2:
        found["max_binlog_size"] = "65536"
    if kind == "mysql" and rng.random() < 0.2:
        found["sql_generate_invisible_primary_key"] = "ON"
    if rng.random() < 0.2:
        found["binlog_row_event_max_size"] = "256"  # the rows of a statement are in several events
    if kind == "mysql" and rng.random() < 0.2:
        found["binlog_rows_query_log_events"] = "ON"
    if kind == "mariadb" and rng.random() < 0.3:
        found["binlog_alter_two_phase"] = "ON"
    return found
