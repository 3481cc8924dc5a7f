"""A private branch of a table: built by one attempt, published whole by a compare-and-swap of main, or thrown away."""

from __future__ import annotations

import logging
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import takewhile
from typing import Self

from py4j.java_gateway import JavaObject

from loader.errors import LoaderError, RetryableError
from loader.failpoints import failpoint
from loader.materialise.iceberg.table_metadata import RUN, Applied, Snapshot, TableMetadata, commit_properties
from loader.materialise.iceberg.warehouse import Warehouse
from loader.materialise.quoting import identifier
from loader.model.table import TableName
from loader.outages import outage

_LOG = logging.getLogger(__name__)
PREFIX = "loader_"
"""How the names of the branches begin that attempts work on."""
_REPLAY = "replay_"
"""How the names of branches go on that show what a replay comes to."""
_FOR = "_for_"
"""Between the name of a branch that is to stand in for main, and the head of main that it is made for."""
_PAUSES = (0.25, 0.5, 1, 2, 4, 8, 0)  # seconds after each try to publish, if the catalog was out
_PROPERTY = "spark.sql.iceberg.snapshot-property."


FinishTransaction = Callable[[JavaObject], None]
"""Adds operations to a transaction of Iceberg."""


class BranchLostError(Exception):
    """The branch cannot become main: main moved, or the branch is no longer what this attempt built."""


def is_conflict(error: Exception) -> bool:
    """Whether it came of somebody else's commit, so that another attempt can do better.

    Iceberg repeats a commit by itself only where it can tell that the other one does not touch it.
    """
    return isinstance(error, BranchLostError) or "CommitFailedException" in str(error)


class Branch:
    """The branch of one attempt; its name is the attempt's and never used again, unless it is given one.

    As a context manager it drops the branch after any exception, as far as the catalog allows that. If main has moved,
    the exception becomes a BranchLostError: a faster run publishes, then drops the branches that it has overtaken.

    Attributes:
        base: main's head when the branch was made, None for a table without any commit.
        target: the branch's name in SQL, to write to.

    Args:
        at: an older snapshot of main that the branch begins at. It stands in for main then: what main has since goes.
        there: it is not made: see `standing_branch`.
    """

    def __init__(
        self,
        warehouse: Warehouse,
        table: TableName,
        base: int | None,
        name: str = "",
        *,
        at: int | None = None,
        there: bool = False,
    ) -> None:
        self._warehouse = warehouse
        self._table = table
        self.base = base
        self._instead = at is not None
        self.name = PREFIX + (name or uuid.uuid4().hex) + (f"{_FOR}{base}" if self._instead else "")
        self.target = warehouse.branch_name(table, self.name)
        begins = at if self._instead else base
        self._root = begins if there else self._made(begins, anew=bool(name))

    def _made(self, begins: int | None, *, anew: bool) -> int:
        """Make the branch; the snapshot that it begins at: on a table without commits Iceberg makes an empty one."""
        create = "CREATE OR REPLACE" if anew else "CREATE"
        at = f" AS OF VERSION {begins}" if begins is not None else ""
        self._sql(f"ALTER TABLE {self._warehouse.name(self._table)} {create} BRANCH {identifier(self.name)}{at}")
        root = self._load().branches[self.name]
        failpoint("branch.after")
        return root

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if error is None:
            return
        drop_branch(self._warehouse, self._table, self.name)
        if isinstance(error, Exception) and not isinstance(error, BranchLostError) and self._overtaken():
            raise BranchLostError("main moved") from error

    def _overtaken(self) -> bool:
        """Whether main is known to have moved; not where the catalog does not tell, since then that is the failure."""
        try:
            return self._load().head != self.base
        except Exception as error:
            _LOG.warning("%s: where main is could not be read: %s", self._table, error)
            return False

    @contextmanager
    def signed(self, properties: Mapping[str, str] | None = None) -> Iterator[None]:
        """Commits inside carry this attempt's name and `properties` in their summary, later ones do not.

        Only an attempt's last commit may carry the applied position: the others are not to be rolled back to.
        """
        conf = self._warehouse.session.conf
        entries = {f"{_PROPERTY}{name}": value for name, value in {RUN: self.name, **(properties or {})}.items()}
        for name, value in entries.items():
            conf.set(name, value)
        try:
            yield
        finally:
            for name in entries:
                conf.unset(name)

    def has_rows(self) -> bool:
        """Whether it may have any: what is to be deleted from one that has none is not there."""
        metadata = self._load()
        head = next(metadata.ancestry(metadata.branches.get(self.name)), None)
        return head is None or head.summary.get("total-records") != "0"

    def commits(self) -> list[Snapshot]:
        """This attempt's commits, newest first.

        Raises:
            BranchLostError: the branch does not lead through them to exactly where it began.
        """
        metadata = self._load()
        if self.name not in metadata.branches:
            raise BranchLostError("the branch was dropped")
        made: list[Snapshot] = []
        for snapshot in metadata.ancestry(metadata.branches[self.name]):
            if snapshot.id == self._root:
                return made
            if snapshot.summary.get(RUN) != self.name:
                raise BranchLostError(f"snapshot {snapshot.id} on the branch is not of this attempt")
            made.append(snapshot)
        raise BranchLostError("the branch does not lead back to where it began")

    def mark(self, properties: Mapping[str, str]) -> None:
        """Commit the properties alone: the rows stay as they are."""
        commit_properties(self._load().append(self.name), {RUN: self.name, **properties})

    def publish(
        self, steps: int, finish: FinishTransaction | None = None, signature: Mapping[str, str] | None = None
    ) -> list[Snapshot]:
        """Make the branch main, if main is still at `base`; this attempt's commits, newest first.

        Args:
            steps: how many commits this attempt made.
            finish: adds to the transaction of Iceberg that does so what is to be seen with the rows, and not before.
            signature: of a last commit in that transaction, after `finish`: a snapshot shows the columns that the
                table had when it was made.

        Raises:
            BranchLostError: somebody else moved main, or the branch is not what was built. Nothing was published.
            RetryableError: the catalog failed. Whether it published the table is found out by the next attempt.
        """
        made = self.commits()
        if len(made) != steps:
            raise BranchLostError(f"the branch has {len(made)} commits of this attempt, not {steps}")
        failpoint("publish.before")
        for pause in _PAUSES:
            try:
                self._forward(made, finish, signature)
                break
            except Exception as error:
                if self._published(error):
                    break
                failed = error
            if outage(failed):  # worth some patience: what led here may have taken an hour
                time.sleep(pause)
        else:
            raise _unpublished_error(failed, self._table) from failed
        failpoint("publish.after")
        return self._in_main(self._load()) if signature else made

    def _forward(
        self, made: Sequence[Snapshot], finish: FinishTransaction | None, signature: Mapping[str, str] | None
    ) -> None:
        """One commit of the catalog. It is a compare-and-swap: on other metadata than was looked at here it fails."""
        metadata = self._load()
        change = metadata.transaction()
        seen = metadata.metadata_of(change)
        if seen.head != self.base:
            raise BranchLostError("main moved")
        if made and seen.branches.get(self.name) != made[0].id:
            raise BranchLostError("the branch moved")
        if finish:
            finish(change)
        manage = change.manageSnapshots()
        forward = manage.replaceBranch if self._instead else manage.fastForwardBranch
        forward("main", self.name).commit()
        if signature:
            commit_properties(change.newAppend(), {RUN: self.name, **signature})
        change.commitTransaction()

    def _published(self, error: Exception) -> bool:
        """After a failure: whether it happened all the same is read from main, never assumed.

        False also while main cannot be read: the next attempt looks at it before it commits.

        Raises:
            BranchLostError: it did not, and cannot any more.
        """
        try:
            metadata = self._load()
        except Exception as unread:
            _LOG.warning("%s: not published yet, and main cannot be read: %s", self._table, unread)
            return False
        if self._in_main(metadata):
            _LOG.warning("%s: the reply of the publication was lost, its effect was not", self._table)
            return True
        if metadata.head != self.base:
            raise BranchLostError("main moved") from error
        if isinstance(error, BranchLostError):
            raise error
        # Not the table's rows but something else of it was changed in between, or the catalog failed.
        _LOG.info("%s: not published yet: %s", self._table, error)
        return False

    def _in_main(self, metadata: TableMetadata) -> list[Snapshot]:
        """This attempt's commits in main, newest first."""
        before = {self.base, self._root}
        since = takewhile(lambda snapshot: snapshot.id not in before, metadata.ancestry(metadata.head))
        return [snapshot for snapshot in since if snapshot.summary.get(RUN) == self.name]

    def _load(self) -> TableMetadata:
        metadata = self._warehouse.metadata(self._table)
        if metadata is None:
            raise LoaderError("the table was dropped while it was merged", table=self._table)
        return metadata

    def _sql(self, statement: str) -> None:
        self._warehouse.session.sql(statement)


def _unpublished_error(error: Exception, table: TableName) -> RetryableError:
    known = outage(error)
    return RetryableError(
        "the catalog did not publish the table",
        why=f"{known.what}: {known.why}" if known else str(error),
        hint="run again; nothing is applied twice",
        table=table,
    )


def find_finished_branch(
    warehouse: Warehouse, table: TableName, base: int | None, name: str, applied: Applied, at: int | None = None
) -> Branch | None:
    """The branch of that name, if an attempt built it whole from `base` or `at`, for a table that stands there."""
    found = Branch(warehouse, table, base, name, at=at, there=True)
    try:
        made = found.commits()
    except BranchLostError:  # also where there is none
        return None
    # Only the last commit of an attempt is signed.
    return found if made and applied.signature.items() <= made[0].summary.items() else None


def replay_branch_name(since: int) -> str:
    """The name of the branch of a replay from a seqno on, without its prefix."""
    return f"{_REPLAY}{since}"


def is_replay_branch(branch: str) -> bool:
    """Whether a branch shows what a replay comes to. It stays until main moves, however long that takes."""
    return branch.startswith(PREFIX + _REPLAY)


def drop_superseded(warehouse: Warehouse, table: TableName) -> None:
    """Drop the loader's branches that can no longer become main: ours after it was published, and those of killed runs.

    A branch that main could still become is left alone: it may be another attempt's at work. One dropped under a
    running attempt was lost already, and that attempt finds out when it publishes.
    """
    metadata = warehouse.metadata(table)
    if metadata is None or metadata.head is None:
        return
    for name, head in metadata.branches.items():
        if name.startswith(PREFIX) and (head == metadata.head or not can_become_main(metadata, name)):
            drop_branch(warehouse, table, name)


def can_become_main(metadata: TableMetadata, branch: str) -> bool:
    """Whether main, where it is now, can be forwarded to a branch of the loader, or have it in its stead."""
    main = metadata.head
    return main is None or branch.endswith(f"{_FOR}{main}") or metadata.descends(metadata.branches[branch], main)


def drop_branch(warehouse: Warehouse, table: TableName, branch: str) -> None:
    """Drop a branch that nothing will become of, as far as the catalog lets us."""
    try:
        statement = f"ALTER TABLE {warehouse.name(table)} DROP BRANCH IF EXISTS {identifier(branch)}"
        warehouse.session.sql(statement)
    except Exception as error:  # tidying up decides nothing, and the next merge does it again
        _LOG.warning("%s: branch %s was not dropped: %s", table, branch, error)
