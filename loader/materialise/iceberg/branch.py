"""A private branch of a table: built by one attempt, then published by a compare-and-swap of main, or dropped."""

from __future__ import annotations

import logging
import re
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Self

from py4j.java_gateway import JavaObject

from loader.failpoints import failpoint
from loader.materialise.iceberg.data_files import DataFiles
from loader.materialise.iceberg.publication import (
    BranchLostError,
    FinishTransaction,
    Publication,
    is_conflict,
    load_existing,
)
from loader.materialise.iceberg.table_metadata import RUN, Applied, Snapshot, TableMetadata, commit_properties
from loader.materialise.iceberg.warehouse import Warehouse
from loader.materialise.quoting import identifier
from loader.model.table import TableName

_LOG = logging.getLogger(__name__)
PREFIX = "loader_"
"""The first part of the names of the loader's branches."""
_REPLAY = "replay_"
"""The second part of the names of branches that hold the result of a replay."""
_FOR = "_for_"
"""In the name of a branch that replaces main, what separates the head of main for which it was made."""
_OWN = re.compile(rf"{PREFIX}([0-9a-f]{{32}}|{_REPLAY}[0-9]+(-[0-9]+)?)({_FOR}[0-9]+)?")
_DROPS = 3  # attempts to drop a branch while others commit
_PROPERTY = "spark.sql.iceberg.snapshot-property."


class Branch:
    """The branch of one attempt. Without a given name it has a random one, which is never used again.

    As a context manager it drops the branch after any exception, as far as the catalog allows that. If main has moved,
    the exception becomes a BranchLostError: a faster run publishes, then drops the branches that it has overtaken.

    Attributes:
        base: main's head when the branch was made, None for a table without any commit.
        name: the branch's name.
        target: the branch's name in SQL, to write to.

    Args:
        warehouse: the catalog.
        table: the table.
        base: see above.
        name: the branch's name without its prefix.
        start: an older snapshot of main at which the branch begins. The branch then replaces main, and later commits of
            main are lost.
        exists: the branch is not created: see `find_finished_branch`.
    """

    def __init__(
        self,
        warehouse: Warehouse,
        table: TableName,
        base: int | None,
        name: str = "",
        *,
        start: int | None = None,
        exists: bool = False,
    ) -> None:
        self._warehouse = warehouse
        self._table = table
        self.base = base
        self._replaces_main = start is not None
        self.name = PREFIX + (name or uuid.uuid4().hex) + (f"{_FOR}{base}" if self._replaces_main else "")
        self.target = warehouse.branch_name(table, self.name)
        root = start if self._replaces_main else base
        self._columns: dict[int, str] = {}  # of the table when the branch was made
        self._root = root if exists else self._create(root, replace=bool(name))
        # Two attempts with one name may commit to one branch. Each signs with another name, so this is noticed.
        self._run = self._run_of_head() if exists else f"{self.name}_{uuid.uuid4().hex}" if name else self.name

    def _create(self, root: int | None, *, replace: bool) -> int:
        """Create the branch. Return its first snapshot: on a table without commits, Iceberg makes an empty snapshot."""
        create = "CREATE OR REPLACE" if replace else "CREATE"
        version = f" AS OF VERSION {root}" if root is not None else ""
        self._sql(f"ALTER TABLE {self._warehouse.name(self._table)} {create} BRANCH {identifier(self.name)}{version}")
        created = self._load()
        self._columns = created.column_ids
        failpoint("branch.after")
        return created.branches[self.name]

    def _run_of_head(self) -> str:
        metadata = self._load()
        head = next(metadata.ancestry(metadata.branches.get(self.name)), None)
        return head.summary.get(RUN, "") if head else ""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if error is None:
            return
        drop_branch(self._warehouse, self._table, self.name)
        if isinstance(error, Exception) and not isinstance(error, BranchLostError) and self._overtaken():
            raise BranchLostError("main moved") from error

    def _overtaken(self) -> bool:
        """Return whether main has moved; False if the catalog does not answer, since then the outage is the failure."""
        try:
            return self._load().head != self.base
        except Exception as error:
            _LOG.warning("%s: the head of main could not be read: %s", self._table, error)
            return False

    @contextmanager
    def signed(self, properties: Mapping[str, str] | None = None) -> Iterator[None]:
        """Sign the commits in this context with the name of this attempt and `properties`, in their summary.

        Only the last commit of an attempt may have the applied position. Nobody may roll back to the others.
        """
        conf = self._warehouse.session.conf
        entries = {f"{_PROPERTY}{name}": value for name, value in {RUN: self._run, **(properties or {})}.items()}
        for name, value in entries.items():
            conf.set(name, value)
        try:
            yield
        finally:
            for name in entries:
                conf.unset(name)

    def has_rows(self) -> bool:
        """Return whether the branch may have rows. An empty branch needs no deletions.

        A total of zero rows in a summary may be wrong: see `has_data_files`.
        """
        metadata = self._load()
        head = metadata.branches.get(self.name)
        snapshot = next(metadata.ancestry(head), None)
        return snapshot is None or snapshot.summary.get("total-records") != "0" or metadata.has_data_files(head)

    def commits(self) -> list[Snapshot]:
        """Return this attempt's commits, newest first.

        Raises:
            BranchLostError: the branch has other commits, or does not lead back to its first snapshot.
        """
        metadata = self._load()
        if self.name not in metadata.branches:
            raise BranchLostError("the branch was dropped")
        made: list[Snapshot] = []
        for snapshot in metadata.ancestry(metadata.branches[self.name]):
            if snapshot.id == self._root:
                return made
            if snapshot.summary.get(RUN) != self._run:
                raise BranchLostError(f"snapshot {snapshot.id} on the branch is not of this attempt")
            made.append(snapshot)
        raise BranchLostError("the branch does not lead back to where it began")

    def mark(self, properties: Mapping[str, str]) -> None:
        """Commit the properties without changing rows."""
        commit_properties(self._load().append(self.name), {RUN: self._run, **properties})

    def append(self, files: DataFiles, properties: Mapping[str, str] | None) -> None:
        """Commit new data files, with the properties in the summary."""
        files.append_to(self._load(), self.name, {RUN: self._run, **(properties or {})})

    def publish(
        self, steps: int, finish: FinishTransaction | None = None, signature: Mapping[str, str] | None = None
    ) -> list[Snapshot]:
        """Make the branch main, if main is still at `base`. Return this attempt's commits, newest first.

        Args:
            steps: the number of commits that this attempt made.
            finish: adds other changes to the publishing transaction. Readers see them together with the rows.
            signature: the summary properties of a last commit after `finish`. A snapshot has the columns that the table
                had when the snapshot was made, so the branch's last commit does not have the final columns.

        Raises:
            BranchLostError: another commit moved main, or the branch is not what was built. Nothing was published.
            RetryableError: the catalog failed. The next attempt finds out whether the table was published.
        """
        made = self.commits()
        if len(made) != steps:
            raise BranchLostError(f"the branch has {len(made)} commits of this attempt, not {steps}")
        publication = Publication(
            self._warehouse, self._table, self.base, self._run, roots=(self._root,), columns=self._columns
        )
        publication.publish(lambda change, seen: self._forward(change, seen, made, finish, signature))
        return publication.commits() if signature else made

    def _forward(
        self,
        change: JavaObject,
        seen: TableMetadata,
        made: Sequence[Snapshot],
        finish: FinishTransaction | None,
        signature: Mapping[str, str] | None,
    ) -> None:
        """Add the move of main to a transaction."""
        if made and seen.branches.get(self.name) != made[0].id:
            raise BranchLostError("the branch moved")
        if finish:
            finish(change)
        manage = change.manageSnapshots()
        forward = manage.replaceBranch if self._replaces_main else manage.fastForwardBranch
        forward("main", self.name).commit()
        if signature:
            commit_properties(change.newAppend(), {RUN: self._run, **signature})

    def _load(self) -> TableMetadata:
        return load_existing(self._warehouse, self._table)

    def _sql(self, statement: str) -> None:
        self._warehouse.session.sql(statement)


def find_finished_branch(
    warehouse: Warehouse, table: TableName, base: int | None, name: str, applied: Applied, start: int | None = None
) -> Branch | None:
    """Return the branch of a name, if an attempt finished it from the same snapshot for the same applied position.

    Args:
        warehouse: the catalog.
        table: the table.
        base: main's head.
        name: the branch's name without its prefix.
        applied: the applied position of the table.
        start: see Branch.
    """
    branch = Branch(warehouse, table, base, name, start=start, exists=True)
    try:
        made = branch.commits()
    except BranchLostError:  # also if there is no such branch
        return None
    # Only the last commit of an attempt is signed.
    return branch if made and applied.signature.items() <= made[0].summary.items() else None


def replay_branch_name(since_seqno: int, until_seqno: int = 0) -> str:
    """Return the name of the branch of a replay of rows that changed between two seqnos, without its prefix."""
    return f"{_REPLAY}{since_seqno}" + (f"-{until_seqno}" if until_seqno else "")


def is_own_branch(branch: str) -> bool:
    """Return whether the loader made a branch. Another name with the same beginning is somebody else's."""
    return _OWN.fullmatch(branch) is not None


def is_replay_branch(branch: str) -> bool:
    """Return whether a branch holds the result of a replay. The branch of a replay stays until main moves."""
    return branch.startswith(PREFIX + _REPLAY)


def drop_superseded(warehouse: Warehouse, table: TableName) -> None:
    """Drop the loader's branches that cannot become main any more: published branches, and branches of killed runs.

    A branch that can still become main stays: another attempt may be writing to it. If a running attempt loses its
    branch here, it could not publish it anyway, and notices it then.
    """
    metadata = warehouse.metadata(table)
    if metadata is None or metadata.head is None:
        return
    for name, head in metadata.branches.items():
        if is_own_branch(name) and (head == metadata.head or not can_become_main(metadata, name)):
            drop_branch(warehouse, table, name)


def can_become_main(metadata: TableMetadata, branch: str) -> bool:
    """Return whether a branch of the loader can become main: by fast-forward, or by replacing it."""
    main = metadata.head
    return main is None or branch.endswith(f"{_FOR}{main}") or metadata.descends(metadata.branches[branch], main)


def drop_branch(warehouse: Warehouse, table: TableName, branch: str) -> None:
    """Drop a branch. An error of the catalog is only logged."""
    statement = f"ALTER TABLE {warehouse.name(table)} DROP BRANCH IF EXISTS {identifier(branch)}"
    for _ in range(_DROPS):
        try:
            warehouse.session.sql(statement)
        except Exception as error:  # the next merge tries again
            failed = error
        else:
            return
        if not is_conflict(failed):
            break
    _LOG.warning("%s: branch %s was not dropped: %s", table, branch, failed)
