"""Notifiers of Airflow, for configurations of tests."""

from __future__ import annotations

from pathlib import Path

from airflow.sdk import Context
from airflow.sdk.bases.notifier import BaseNotifier


class FileNotifier(BaseNotifier):
    """Writes each message as a line of a file."""

    template_fields = ("text",)

    def __init__(self, file: str, text: str) -> None:
        super().__init__()
        self.file = file
        self.text = text

    def notify(self, context: Context) -> None:
        with Path(self.file).open("a", encoding="utf-8") as sent:
            sent.write(self.text.partition("\n")[0] + "\n")
