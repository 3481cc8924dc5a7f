"""The status pages inside Airflow's API server, with its login and its permissions.

Airflow does not protect the applications of plugins. So every page demands a user, and shows the sources whose DAG
`SOURCE.delta` this user may read. Links lead to the DAGs, and buttons ask Airflow's API to trigger them with the
session of the user. In both cases Airflow checks the rights of the user.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import partial
from http import HTTPStatus
from typing import Any
from urllib.parse import quote

from airflow.api_fastapi.app import get_auth_manager
from airflow.api_fastapi.auth.managers.models.base_user import BaseUser
from airflow.api_fastapi.auth.managers.models.resource_details import DagDetails
from airflow.api_fastapi.core_api.security import GetUserDep
from fastapi import FastAPI, HTTPException, Request, Response

from loader.airflow.actions.command_forms import forms_of
from loader.airflow.connections import keep_password
from loader.airflow.sources import settings_of
from loader.airflow.versions import team_names
from loader.config.file import load_config
from loader.dag_settings import dag_key
from loader.error_page import ErrorLinks
from loader.errors import LoaderError
from loader.page.buttons import SCRIPT
from loader.page.host import Action
from loader.page.html import tag
from loader.page.reports.report_cache import ReportCache
from loader.page.reports.source_report import ReportReader
from loader.page.site import BUTTON_HEADERS, FILES, Answer, Site, error_answer, file_answer, text_answer
from loader.settings import SourceSettings

_ACTIONS = {"delta": "Run", "replay": "Replay", "repair": "Repair", "check": "Check"}
_WITHOUT_FORM = {"delta", "check"}
"""DAGs that run by their defaults."""
_AIRFLOW = "../"
"""The address of Airflow, relative to the pages."""


class AirflowHost:
    """The pages inside Airflow: hints also name the forms of the source's DAGs. See Host.

    Args:
        links: to the documentation.
    """

    script = SCRIPT

    def __init__(self, links: ErrorLinks) -> None:
        self.links = links

    def actions(self, source: str) -> Sequence[Action]:
        """See Host."""
        return [
            _action(f"{word}: {source}.{name}", dag_id(source, name), {} if name in _WITHOUT_FORM else None)
            for name, word in _ACTIONS.items()
        ]

    def table_actions(self, source: str, table: str, start: str, *, paused: bool) -> Sequence[Action]:
        """See Host."""
        replay, repair, tables = dag_id(source, "replay"), dag_id(source, "repair"), {"tables": [table]}
        found = []
        if start:
            conf = {"from": start, **tables, "dry_run": True}
            found.append(_action(f"Compare with the log since {start}: {replay}", replay, conf))
        if paused:
            found.append(_action(f"Resume: {repair}", repair, {"action": "resume", **tables}))
        else:
            found.append(_action(f"Pause: {repair}", repair, {"action": "pause", **tables})._replace(ask="reason"))
        return found

    def forms(self, source: str, hint: str) -> Sequence[Action]:
        """See Host."""
        key = dag_key(source)
        return [_action(form.trigger(key), dag_id(source, form.dag), form.conf) for form in forms_of(hint)]


def dag_id(source: str, name: str) -> str:
    """Return the id of a DAG of a source."""
    return f"{dag_key(source)}.{name}"


def readable_sources(sources: Collection[str], user: BaseUser) -> list[str]:
    """Return the sources whose delta DAG a user may read."""
    ids = {source: dag_id(source, "delta") for source in sources}
    teams = team_names(ids.values())
    manager = get_auth_manager()
    return [
        source
        for source, name in ids.items()
        if manager.is_authorized_dag(method="GET", details=DagDetails(id=name, team_name=teams.get(name)), user=user)
    ]


def status_app() -> FastAPI:
    """Return the application. It has no page without a login, and no description of its interface."""
    app = FastAPI(openapi_url=None, docs_url=None, redoc_url=None)
    reports = ReportCache(ReportReader(_settings).read)

    for name in FILES:
        app.get(f"/{name}")(partial(_file, name))

    @app.get("/")
    @app.get("/{page}")
    def show(request: Request, user: GetUserDep, page: str = "") -> Response:
        return _response(_answer(page, dict(request.query_params), user, reports))

    @app.exception_handler(HTTPException)
    def refuse(_: Request, error: HTTPException) -> Response:
        return _response(_refusal(error))

    return app


def _answer(page: str, query: dict[str, str], user: BaseUser, reports: ReportCache) -> Answer:
    try:
        config = load_config()
    except LoaderError as error:
        if not get_auth_manager().is_authorized_dag(method="GET", details=DagDetails(), user=user):
            raise HTTPException(HTTPStatus.FORBIDDEN) from None
        return error_answer(error, AirflowHost(ErrorLinks()))
    sources = readable_sources(config.sources, user)
    if not sources:
        raise HTTPException(HTTPStatus.FORBIDDEN)
    return Site(sources, reports, AirflowHost(ErrorLinks(config.docs_url))).answer(page, query)


def _refusal(error: HTTPException) -> Answer:
    if error.status_code == HTTPStatus.UNAUTHORIZED:
        return text_answer(
            error.status_code, "Log in", tag("a", "Log in to Airflow", href=_AIRFLOW), ", then come back."
        )
    if error.status_code == HTTPStatus.FORBIDDEN:
        return text_answer(error.status_code, "Forbidden", "You may not read the DAGs of any source.")
    return text_answer(error.status_code, "Not found", "There is no such page.")


def _file(name: str) -> Response:
    return _response(file_answer(name))


def _response(answer: Answer) -> Response:
    return Response(answer.body, answer.status, BUTTON_HEADERS, answer.media_type)


def _settings(source: str) -> SourceSettings:
    settings = settings_of(source)
    keep_password(settings)
    return settings


def _action(text: str, dag: str, conf: dict[str, Any] | None) -> Action:
    name = quote(dag)
    return Action(text, f"{_AIRFLOW}dags/{name}", f"{_AIRFLOW}api/v2/dags/{name}/dagRuns", conf)
