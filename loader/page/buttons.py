"""Links to DAGs of Airflow, with buttons that trigger them at once."""

from __future__ import annotations

import json

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
    label = f"Trigger {name}" + (f": {action.conf.get('action', '')}" if action.conf else "")
    button = tag(
        "button", label, type="button", hidden=True, data_runs=action.runs, data_dag=action.dag, data_conf=conf
    )
    return join((link, " ", button))


def button_script(host: Host) -> Html:
    """Return the script of the buttons, or nothing if the pages have none."""
    return tag("script", src=host.script, defer=True) if host.script else join(())
