"""The form of a DAG in Airflow's pages, as a person uses it."""

from __future__ import annotations

import re
from typing import Any

from playwright.sync_api import Locator, Page, expect


class Form:
    """The form of a DAG, which a person has opened by the button "Trigger".

    Attributes:
        run: the id of the run that was triggered; empty before.
    """

    run = ""

    def __init__(self, page: Page, dag: str) -> None:
        self._page, self._dag = page, dag
        page.goto("/")  # which logs in: Airflow 3.1 then opens this page, whatever was asked for
        expect(page.get_by_role("link", name="Dags").first).to_be_visible()
        page.goto(f"/dags/{dag}")
        page.get_by_role("button", name="Trigger").first.click()
        self._dialog = page.get_by_role("dialog")
        self._fields = self._dialog.get_by_test_id("config-form")
        self.button = self._dialog.get_by_role("button", name="Trigger", exact=True)
        expect(self.button).to_be_visible()

    def field(self, name: str) -> Locator:
        return self._fields.locator(f"[name=element_{name}]")

    def fill(self, **texts: str) -> None:
        for name, text in texts.items():
            self.field(name).fill(text)

    def tick(self, name: str, on: bool) -> None:
        """Set a switch."""
        if self.field(name).is_checked() != on:
            self.field(name).locator("xpath=..").click()
        expect(self.field(name)).to_be_checked(checked=on)

    def type_and_clear(self, name: str, text: str) -> None:
        self.field(name).fill(text)
        self.field(name).blur()
        self.field(name).fill("")
        self.field(name).blur()

    def choose(self, value: str) -> None:
        self._fields.get_by_role("combobox").click()
        self._page.get_by_role("option", name=re.compile("^" + re.escape(value))).click()

    def refused(self) -> str:
        """Why Airflow does not take the form."""
        with self._page.expect_response(lambda answer: answer.url.endswith(f"/{self._dag}/dagRuns")) as answered:
            self.button.click()
        assert answered.value.status == 400
        return answered.value.text()

    def trigger(self) -> dict[str, Any]:
        """The conf of the run, as Airflow took it from the form."""
        expect(self.button).to_be_enabled()
        with self._page.expect_response(lambda answer: answer.url.endswith(f"/{self._dag}/dagRuns")) as answered:
            self.button.click()
        assert answered.value.status == 200, answered.value.text()
        answer: dict[str, Any] = answered.value.json()
        self.run = str(answer["dag_run_id"])
        found: dict[str, Any] = answer["conf"]
        return found
