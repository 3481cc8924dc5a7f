"""What a task committed, as OpenLineage describes it: from each source table to its warehouse table.

Imported only if OpenLineage is installed. The provider logs an error in here as a warning, and the task goes on.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from airflow.providers.openlineage.extractors.base import OperatorLineage
from openlineage.client.event_v2 import InputDataset, OutputDataset
from openlineage.client.facet_v2 import (
    DatasetFacet,
    catalog_dataset,
    column_lineage_dataset,
    dataset_version_dataset,
    input_statistics_input_dataset,
    output_statistics_output_dataset,
    schema_dataset,
    symlinks_dataset,
)

from loader.airflow.lineage import dataset_names
from loader.airflow.lineage.dataset_names import DatasetName
from loader.airflow.lineage.facets import IntervalRunFacet, PositionDatasetFacet
from loader.airflow.lineage.task_work import TaskWork
from loader.airflow.reports.asset_events import committed_tables
from loader.materialise.plan.table_layout import Layout
from loader.materialise.rules import rule_of
from loader.materialise.spec import LoadSpec, MaterialiseSpec, ReplaySpec, TablesSpec
from loader.model.table import TableName, TableSchema
from loader.staging.chain import PlanChain
from loader.staging.documents import Manifest
from loader.store.registry import open_store
from loader.transport.server.address import ServerAddress

INTERVAL, POSITION = "binlogLoader_interval", "binlogLoader_position"
"""Names of this loader's own facets."""
_IDENTITY = column_lineage_dataset.Transformation(type="DIRECT", subtype="IDENTITY")


def lineage(work: TaskWork) -> OperatorLineage[Any, Any]:
    """Return a pair of datasets for each table that the task committed to."""
    interval = {name: str(work.arguments.get(name) or "") for name in ("start", "stop")}
    found: OperatorLineage[Any, Any] = OperatorLineage(
        run_facets={INTERVAL: IntervalRunFacet(source=work.source, **interval)}
    )
    committed = list(committed_tables(work.arguments, work.result, work.tries))
    if not committed or not isinstance(work.spec, TablesSpec):
        return found
    schemas = _schemas(work, work.spec)
    for result, counts in committed:
        table = TableName.parse(result["table"])
        pair = _TablePair(work.server, work.spec, table, schemas.get(table))
        found.inputs.append(pair.input(counts))
        found.outputs.append(pair.output(result, counts, work.result.get("stop", "")))
    return found


@dataclass(frozen=True)
class _TablePair:
    """A source table and its warehouse table. Without a schema, the columns are unknown."""

    server: ServerAddress
    spec: TablesSpec
    table: TableName
    schema: TableSchema | None

    def input(self, counts: Mapping[str, int]) -> InputDataset:
        """Return the source table, with the number of its staged records."""
        rows = sum(counts[name] for name in ("inserts", "updates", "deletes"))
        facets: dict[str, DatasetFacet] = {}
        if self.schema:
            facets["schema"] = _schema({column.name: str(column) for column in self.schema.columns})
        statistics = input_statistics_input_dataset.InputStatisticsInputDatasetFacet(rowCount=rows)
        name = self._source
        return InputDataset(
            namespace=name.namespace, name=name.name, facets=facets, inputFacets={"inputStatistics": statistics}
        )

    def output(self, result: Mapping[str, Any], counts: Mapping[str, int], stop: str) -> OutputDataset:
        """Return the warehouse table, with its columns, its position and the number of rows that were written."""
        catalog, snapshot = self.spec.catalog, str(result.get("snapshot") or "")
        written = result.get("rows_inserted") or counts["inserts"] + counts["updates"]
        named = dataset_names.catalog_dataset(catalog, self.table)
        symlink = symlinks_dataset.Identifier(namespace=named.namespace, name=named.name, type="TABLE")
        facets: dict[str, DatasetFacet] = {
            "symlinks": symlinks_dataset.SymlinksDatasetFacet(identifiers=[symlink]),
            "catalog": catalog_dataset.CatalogDatasetFacet(
                framework="iceberg", type=catalog.type, name=catalog.name, warehouseUri=catalog.warehouse
            ),
            POSITION: PositionDatasetFacet(result.get("position") or stop, snapshot, *counts.values()),
        }
        if snapshot:
            facets["version"] = dataset_version_dataset.DatasetVersionDatasetFacet(datasetVersion=snapshot)
        if self.schema:
            layout = Layout(self.schema, rule_of(self.spec.rules, self.table))
            facets["schema"] = _schema({column.name: column.type for column in layout.columns})
            facets["columnLineage"] = self._columns(self.schema, layout)
        statistics = output_statistics_output_dataset.OutputStatisticsOutputDatasetFacet(rowCount=written)
        name = dataset_names.warehouse_dataset(catalog, self.table)
        return OutputDataset(
            namespace=name.namespace, name=name.name, facets=facets, outputFacets={"outputStatistics": statistics}
        )

    @property
    def _source(self) -> DatasetName:
        return dataset_names.source_dataset(self.server, self.table)

    def _columns(self, schema: TableSchema, layout: Layout) -> column_lineage_dataset.ColumnLineageDatasetFacet:
        """Return the source column of each column. The loader's own columns have none."""
        sources = {layout.name(column.name): column.name for column in schema.columns}
        sources |= {text: layout.lenient_columns[place] for place, text in layout.text_columns.items()}
        fields = {
            name: column_lineage_dataset.Fields(
                inputFields=[column_lineage_dataset.InputField(*self._source, column, transformations=[_IDENTITY])]
            )
            for name, column in sources.items()
        }
        return column_lineage_dataset.ColumnLineageDatasetFacet(fields=fields)


def _schema(columns: Mapping[str, str]) -> schema_dataset.SchemaDatasetFacet:
    fields = [
        schema_dataset.SchemaDatasetFacetFields(name=name, type=kind, ordinal_position=place)
        for place, (name, kind) in enumerate(columns.items(), start=1)
    ]
    return schema_dataset.SchemaDatasetFacet(fields=fields)


def _schemas(work: TaskWork, spec: TablesSpec) -> dict[TableName, TableSchema]:
    """Return the newest schema of each table with rows in the staged files that the task applied."""
    found = {}
    for manifest in _manifests(work, spec):
        for file in sorted(manifest.files, key=lambda file: file.max_seqno):
            found[file.name] = manifest.schema_of(file.schema_id)
        for schema_id in manifest.schemas if not manifest.files else ():  # the load of an empty table
            found[manifest.schema_of(schema_id).name] = manifest.schema_of(schema_id)
    return found


def _manifests(work: TaskWork, spec: TablesSpec) -> Iterator[Manifest]:
    store = open_store(spec.staging_root)
    if isinstance(spec, LoadSpec):
        yield from (Manifest.read(store.get(key), key) for key in spec.manifests)
        return
    start = work.arguments.get("start_seqno") if isinstance(spec, MaterialiseSpec) else None
    start = spec.since_seqno if isinstance(spec, ReplaySpec) else start
    if start is None:
        return
    stop = work.result.get("stop_seqno")
    for manifest in PlanChain(store, spec.source).manifests_from(spec.generation, start):
        yield manifest
        if stop is not None and manifest.stop_seqno >= stop:
            return
