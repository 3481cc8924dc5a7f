"""The use cases. Only this package knows the order of the stages.

    initial load:  begin -> read tables (Spark job) -> load tables (Spark job); or both in one full-load job
    delta:         plan interval -> extract (Spark job) -> materialise (Spark job); or both in one delta job

Each use case can be repeated at any time. Work that is already done is found and not repeated.
"""

from loader.pipeline.adoption import plan_adoption, record_adoption
from loader.pipeline.chain.chain_begin import begin, begin_again, begin_at
from loader.pipeline.chain.failover import follow_accepting, follow_to
from loader.pipeline.chain.interval_lookup import find_interval, find_stop
from loader.pipeline.chain.log_lookup import find_log_position
from loader.pipeline.chain.plan_chain import chain_of
from loader.pipeline.chain.planning import IntervalChosen, plan_interval, unfinished
from loader.pipeline.chain.replay_start import ReplayStart, find_replay_end, find_replay_start
from loader.pipeline.job_kinds import KINDS, Job, run_in_threads
from loader.pipeline.jobs import (
    adopt_job,
    delta_job,
    extract_job,
    full_load_job,
    intervals_since,
    load_tables_job,
    maintain_job,
    materialise_job,
    read_tables_job,
    reextract_job,
    replay_job,
    restore_job,
    snapshots_job,
)
from loader.pipeline.reports.activity import IntervalActivity, Statement, TableActivity, activity
from loader.pipeline.reports.applied_statements import AppliedStatements, AppliedUpTo, applied_statements
from loader.pipeline.reports.gauges import Gauge, gauges, prometheus_text, read_gauges, unreadable
from loader.pipeline.reports.interval_details import (
    FileFault,
    IntervalDetail,
    IntervalState,
    interval,
    intervals,
    staged_files,
    verify_interval,
)
from loader.pipeline.reports.lag import PostponedState, SourceLag, source_lag, unapplied_seconds
from loader.pipeline.reports.load_forecast import LoadForecast, TableForecast, forecast_load
from loader.pipeline.reports.retention import source_runway
from loader.pipeline.reports.source_status import SourceStatus, TableState, status
from loader.pipeline.reports.table_progress import has_position, has_time
from loader.pipeline.reports.views import TableView, View, view
from loader.pipeline.skips.records import TransactionRows, find_skippable, skip_transaction
from loader.pipeline.skips.states import SkipState
from loader.pipeline.skips.withdrawal import withdraw_skip
from loader.pipeline.upkeep.kept_files import KeptFiles, kept_files
from loader.pipeline.upkeep.new_tables import ListedTables, UnloadedTable, find_unloaded, list_tables
from loader.pipeline.upkeep.quarantine_release import quarantines_of, release
from loader.pipeline.upkeep.schema_descriptions import ShownTable, set_table_schema, table_schema
from loader.pipeline.upkeep.signatures import sign_staged
from loader.pipeline.upkeep.staging_purge import Removal, purge
from loader.pipeline.upkeep.table_pauses import pause, pauses_of, resume
from loader.pipeline.verification import Verified, verification

__all__ = [
    "KINDS",
    "AppliedStatements",
    "AppliedUpTo",
    "FileFault",
    "Gauge",
    "IntervalActivity",
    "IntervalChosen",
    "IntervalDetail",
    "IntervalState",
    "Job",
    "KeptFiles",
    "ListedTables",
    "LoadForecast",
    "PostponedState",
    "Removal",
    "ReplayStart",
    "ShownTable",
    "SkipState",
    "SourceLag",
    "SourceStatus",
    "Statement",
    "TableActivity",
    "TableForecast",
    "TableState",
    "TableView",
    "TransactionRows",
    "UnloadedTable",
    "Verified",
    "View",
    "activity",
    "adopt_job",
    "applied_statements",
    "begin",
    "begin_again",
    "begin_at",
    "chain_of",
    "delta_job",
    "extract_job",
    "find_interval",
    "find_log_position",
    "find_replay_end",
    "find_replay_start",
    "find_skippable",
    "find_stop",
    "find_unloaded",
    "follow_accepting",
    "follow_to",
    "forecast_load",
    "full_load_job",
    "gauges",
    "has_position",
    "has_time",
    "interval",
    "intervals",
    "intervals_since",
    "kept_files",
    "list_tables",
    "load_tables_job",
    "maintain_job",
    "materialise_job",
    "pause",
    "pauses_of",
    "plan_adoption",
    "plan_interval",
    "prometheus_text",
    "purge",
    "quarantines_of",
    "read_gauges",
    "read_tables_job",
    "record_adoption",
    "reextract_job",
    "release",
    "replay_job",
    "restore_job",
    "resume",
    "run_in_threads",
    "set_table_schema",
    "sign_staged",
    "skip_transaction",
    "snapshots_job",
    "source_lag",
    "source_runway",
    "staged_files",
    "status",
    "table_schema",
    "unapplied_seconds",
    "unfinished",
    "unreadable",
    "verification",
    "verify_interval",
    "view",
    "withdraw_skip",
]
