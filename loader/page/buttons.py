"""Links to DAGs of Airflow, with buttons that trigger them at once."""

from __future__ import annotations

import json
from collections.abc import Sequence

from loader.page.host import Action, Host
from loader.page.html import Html, join, tag

SCRIPT = "actions.js"


def action_link(action: Action) -> Html:
    """Return the link to the DAG of an action. A button follows if nothing has to be filled in.

    The script of the page shows the button. Without scripts only the link is there.
    """
    link = tag("a", action.text, href=action.dag)
    if action.conf is None:
        return link
    name = action.dag.rpartition("/")[2]
    conf = json.dumps(action.conf)  # in ASCII, which a page shows as it is
    word = action.conf.get("action") or ("dry run" if action.conf.get("dry_run") else "")
    button = tag(
        "button",
        f"Trigger {name}" + (f": {word}" if word else ""),
        type="button",
        hidden=True,
        data_runs=action.runs,
        data_dag=action.dag,
        data_conf=conf,
        data_ask=action.ask or None,
    )
    return join((link, " ", button))


def action_list(actions: Sequence[Action]) -> Html:
    """Return a list of actions, or nothing without actions."""
    items = [tag("li", action_link(action)) for action in actions]
    return tag("ul", join(items), class_="actions") if items else join(())


def button_script(host: Host) -> Html:
    """Return the script of the buttons, or nothing if the pages have none."""
    return tag("script", src=host.script, defer=True) if host.script else join(())
