"""Comparing two extractions of one interval: the same log and the same plan must give the same bytes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

from pydantic import BaseModel, ConfigDict, computed_field

from loader.errors import StagedDataError
from loader.staging.documents import Manifest, StagedFile

_OF_A_FILE = ("schema_id", "inserts", "updates", "deletes", "bytes", "sha256", "min_seqno", "max_seqno")
_BESIDE_FILES = ("stop", "schemas", "barriers", "held", "gtids", "mark", "balance", "left_out", "skips")


class Difference(BaseModel):
    """A file, named without its attempt, or another part of the manifest that differs."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    what: Literal["only staged", "only extracted again", "different"]
    why: str = ""


class ReextractResult(BaseModel):
    """The result of extracting an interval again: numbers of files and bytes, and the differences."""

    model_config = ConfigDict(frozen=True)

    start: str
    stop: str
    start_seqno: int
    files: int
    bytes: int
    differences: tuple[Difference, ...]

    @computed_field  # type: ignore[prop-decorator]
    @property
    def exit_code(self) -> int:
        """0 without differences, else the code of a data error."""
        return StagedDataError.exit_code if self.differences else 0


def combine_results(results: Sequence[ReextractResult]) -> ReextractResult:
    """Return the results of an interval's manifests as one result; see plans_and_manifests."""
    return results[0].model_copy(
        update={
            "files": sum(one.files for one in results),
            "bytes": sum(one.bytes for one in results),
            "differences": tuple(found for one in results for found in one.differences),
        }
    )


def compare_manifests(staged: Manifest, again: Manifest) -> ReextractResult:
    """Return the differences between a published manifest and the manifest of a later extraction."""
    return ReextractResult(
        start=again.start,
        stop=again.stop,
        start_seqno=again.start_seqno,
        files=len(again.files),
        bytes=sum(file.bytes for file in again.files),
        differences=(*_of_files(staged, again), *_of_the_rest(staged, again)),
    )


def _of_files(staged: Manifest, again: Manifest) -> Iterator[Difference]:
    before, after = files_by_name(staged), files_by_name(again)
    for name in sorted(before.keys() | after.keys()):
        if name not in after:
            yield Difference(name=name, what="only staged")
        elif name not in before:
            yield Difference(name=name, what="only extracted again")
        elif why := _changed(before[name], after[name]):
            yield Difference(name=name, what="different", why=why)


def _of_the_rest(staged: Manifest, again: Manifest) -> Iterator[Difference]:
    for name in _BESIDE_FILES:
        before, after = getattr(staged, name), getattr(again, name)
        if name == "left_out" and not any(one.last_seqno for one in staged.left_out):  # of an older version
            after = tuple(one.model_copy(update={"last_seqno": 0}) for one in again.left_out)
        if before != after:
            yield Difference(name=name, what="different", why=f"{before} became {after}")


def files_by_name(manifest: Manifest) -> dict[str, StagedFile]:
    """Return the files by their keys without the attempt."""
    return {file.key.split("/", 4)[-1]: file for file in manifest.files}


def _changed(before: StagedFile, after: StagedFile) -> str:
    pairs = ((name, getattr(before, name), getattr(after, name)) for name in _OF_A_FILE)
    return "; ".join(f"{name} {was} became {now}" for name, was, now in pairs if was != now)
