"""The Spark job of `loader.spark.submit.warm`: loads and merges a few rows, to record the classes that Spark uses."""

from __future__ import annotations

from pyspark.sql import SparkSession

from loader.materialise.load.load_run import load
from loader.materialise.merge.source_run import materialise
from loader.materialise.spec import CatalogSettings, LoadSpec, MaterialiseResult, MaterialiseSpec
from loader.model.identity import Identity
from loader.model.position import Position
from loader.model.table import Column, TableName, TableSchema
from loader.spark.job import job_main
from loader.spark.submit import WarmSpec
from loader.staging.chain import PlanChain
from loader.staging.documents import Generation, Manifest, Mark, Plan, StagedFile, TableFilter
from loader.staging.layout import interval_folder, load_folder
from loader.staging.parts import PartWriter
from loader.store.local import LocalStore

_SOURCE, _GENERATION = "warm", "0001"
_IDENTITY = Identity(kind="mysql", version="", server_id=1)
_P0, _STOP = Position("warm", 1, 4), Position("warm", 1, 1000)
_SCHEMA = TableSchema(
    TableName("warm", "rows"),
    (
        Column("id", "int"),
        Column("name", "varchar", charset="utf8mb4"),
        Column("price", "decimal", size=10, scale=2),
        Column("at", "datetime"),
        Column("data", "varbinary"),
    ),
    ("id",),
)


def warm(spark: SparkSession, spec: WarmSpec) -> MaterialiseResult:
    """Load four rows, then update, delete and insert among them."""
    store = LocalStore(f"file://{spec.folder}/staging")
    catalog = CatalogSettings(type="hadoop", warehouse=f"file://{spec.folder}/lake")
    mark = Mark(log="", last=0, event="")
    PlanChain(store, _SOURCE).begin(
        Generation(source=_SOURCE, name=_GENERATION, identity=_IDENTITY, start=str(_P0), mark=mark)
    )
    manifest = _load(store)
    about = {"source": _SOURCE, "generation": _GENERATION, "staging_root": store.root, "catalog": catalog}
    load(spark, LoadSpec.model_validate({**about, "manifests": (manifest,)}))
    _interval(store)
    return materialise(spark, MaterialiseSpec.model_validate(about))


def _load(store: LocalStore) -> str:
    folder = f"{load_folder(_SOURCE, _GENERATION, _SCHEMA.name)}/{_P0.seqno():020d}"
    file = _part(store, folder, "I" * 4, _P0.seqno())
    _publish(store, f"{folder}/manifest.json", _P0, _P0, file)
    return f"{folder}/manifest.json"


def _interval(store: LocalStore) -> None:
    folder = interval_folder(_SOURCE, _GENERATION, _P0.seqno())
    plan = Plan(
        source=_SOURCE,
        generation=_GENERATION,
        identity=_IDENTITY,
        start=str(_P0),
        stop=str(_STOP),
        shift=0,
        tables=TableFilter(include=("*",)),
    )
    store.create(f"{folder}/plan.json", plan.canonical())
    _publish(store, f"{folder}/manifest.json", _P0, _STOP, _part(store, folder, "UDIUI", _STOP.seqno()))


def _part(store: LocalStore, folder: str, ops: str, seqno: int) -> StagedFile:
    """Stage a file with one record per op. The nth record is of row n."""
    lines = [
        f'{op},{seqno},{row},2026-01-01 00:00:00.000000,,{row},"na\\\\me {row}",{row}.25,2026-01-01 00:00:00,"00ff"\n'
        for row, op in enumerate(ops)
    ]
    with PartWriter(store, folder, "warm", "000001-0000") as part:
        part.write(_SCHEMA, memoryview("".join(lines).encode()))
    return part.staged(_SCHEMA, (ops.count("I"), ops.count("U"), ops.count("D")), (seqno, seqno))


def _publish(store: LocalStore, key: str, start: Position, stop: Position, file: StagedFile) -> None:
    manifest = Manifest(
        source=_SOURCE,
        generation=_GENERATION,
        identity=_IDENTITY,
        start=str(start),
        stop=str(stop),
        start_seqno=start.seqno(),
        stop_seqno=stop.seqno(),
        files=(file,),
        schemas={_SCHEMA.schema_id: _SCHEMA.as_dict()},
        loader_version="",
    )
    store.create(key, manifest.canonical())


if __name__ == "__main__":
    job_main(warm, WarmSpec)
