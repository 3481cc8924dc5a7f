"""A real browser: Debian's Chromium, driven by Playwright."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Page, expect, sync_playwright

expect.set_options(timeout=30_000)  # milliseconds; pages of Airflow take longer than five seconds on a busy machine
_PROGRAM = Path(__file__).resolve().parents[4] / "infra" / "chromium.sh"


@contextmanager
def browsing(url: str) -> Iterator[Page]:
    """A page of a browser of its own; paths that it goes to are below `url`."""
    program = subprocess.run([_PROGRAM], check=True, stdout=subprocess.PIPE, text=True).stdout.strip()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program)
        try:
            yield browser.new_page(base_url=url, viewport={"width": 1400, "height": 1200}, reduced_motion="reduce")
        finally:
            browser.close()
