"""The plugin that adds the status pages to Airflow, as "Binlog loader" in the menu "Browse".

Every process of Airflow imports this module: scheduler, tasks and commands. Only the API server answers requests, so
only it imports the pages.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from loader.airflow.versions import AirflowPlugin

if TYPE_CHECKING:
    from fastapi import FastAPI
    from starlette.types import Receive, Scope, Send

_NAME, _FOLDER = "Binlog loader", "binlog-loader"


class LazyApp:
    """The application of the pages. It is imported for the first request."""

    _app: FastAPI | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if self._app is None:
            from loader.airflow.status_app import status_app

            self._app = status_app()
        await self._app(scope, receive, send)


class StatusPlugin(AirflowPlugin):
    """The status pages. See docs/how-to/status-page.md.

    Airflow shows a view with a `url_route` in a frame whose links cannot leave it. Without a route the view opens in
    its own tab, where links to DAGs work. Airflow 3.3 makes this tab from the menu "Browse" only: at the top level, it
    draws a button that does nothing. Its address is relative to the address of Airflow, which may have a path.
    """

    name = "binlog_loader"

    def __init__(self) -> None:
        self.fastapi_apps = [{"app": LazyApp(), "url_prefix": f"/{_FOLDER}", "name": _NAME}]
        self.external_views = [
            {
                "name": _NAME,
                "href": f"{_FOLDER}/",
                "icon": f"{_FOLDER}/icon.svg",
                "destination": "nav",
                "category": "browse",
            }
        ]
