"""What happens to loader, server, staging and configuration while the writers write."""

from __future__ import annotations

import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from random import Random
from time import sleep
from typing import TYPE_CHECKING

from tests.chaos.access.source import DATABASE
from tests.chaos.faults.damage import damage
from tests.chaos.faults.held_commits import held_commits

if TYPE_CHECKING:
    from tests.chaos.run import Run
    from tests.chaos.scenario import Scenario


def choose(rng: Random, scenario: Scenario) -> Callable[[Run, Random], None]:
    """Return a random fault; `nothing` is one of them."""
    if "faults" in scenario.without:
        return nothing
    allowed = {one: weight for one, weight in FAULTS.items() if not scenario.faults}
    allowed = allowed or {one: max(1, weight) for one, weight in FAULTS.items() if one.__name__ in scenario.faults}
    return rng.choices(list(allowed), list(allowed.values()))[0]


def nothing(run: Run, rng: Random) -> None:
    """The loader waits until the writers are done."""


def deltas(run: Run, rng: Random) -> None:
    """Deltas run while rows and tables change."""
    for _ in range(rng.randint(1, 2)):
        run.loader("run")


def loader_killed(run: Run, rng: Random) -> None:
    """A delta is killed with all its processes, at any moment from its start on."""
    seconds = rng.uniform(1, 15)
    run.say(f"  a delta is killed after {seconds:.1f} s")
    run.loader("run", kill_after=seconds)


def load_killed(run: Run, rng: Random) -> None:
    """An initial load that reads everything anew is killed, then started again."""
    seconds = rng.uniform(2, 20)
    run.say(f"  an initial load is killed after {seconds:.1f} s")
    run.loader("initial-load", "--again", kill_after=seconds)
    run.loader("initial-load")


def server_killed(run: Run, rng: Random) -> None:
    """The server dies and comes back, at any moment of a delta or an initial load."""
    command = rng.choice([("run",), ("run",), ("initial-load", "--again")])
    seconds = rng.uniform(0, 12)
    run.say(f"  the server is killed {seconds:.1f} s after the start of {' '.join(command)}")
    with ThreadPoolExecutor(1) as pool:
        ended = pool.submit(run.loader, *command)
        sleep(seconds)
        run.server.kill()
        run.server.start()
        ended.result()
    run.loader(command[0])


def log_purged(run: Run, rng: Random) -> None:
    """The server purges the log files that the loader needs no longer, as its retention does some day."""
    run.reader.execute("FLUSH BINARY LOGS")
    run.loader("run")
    ended = run.command.run("status")
    if ended.code or not ended.document["runway"]:
        run.say(f"  no runway: {[one['what'] for one in ended.errors]}")
        return
    file = ended.document["runway"]["file"]  # an XA transaction that was prepared before a kill may need older ones
    run.say(f"  files before {file} are purged")
    run.quiet.emptied.read()
    run.reader.execute(f"PURGE BINARY LOGS TO '{file}'")
    if rng.random() < 0.5:
        run.loader("run")


def rotated(run: Run, rng: Random) -> None:
    """The log goes on in new files."""
    for _ in range(rng.randint(1, 3)):
        run.reader.execute("FLUSH BINARY LOGS")


def loaded_while_commits_wait(run: Run, rng: Random) -> None:
    """Tables are read anew while commits are in the log that no reader sees; more of them begin meanwhile."""
    with ThreadPoolExecutor(9) as pool, held_commits(run.reader, run.scenario.kind):
        loading = pool.submit(run.loader, "initial-load", "--again")
        for number in range(8):
            pool.submit(run.write_once, Random(rng.random()), f"h{number}")
            sleep(rng.uniform(0, 1.5))
        sleep(rng.uniform(0, 6))
    loading.result()


def loaded_again(run: Run, rng: Random) -> None:
    """Tables are read anew while they are written to: all of them, or one."""
    if rng.random() < 0.4:
        loaded_while_commits_wait(run, rng)
        return
    names = run.reader.tables()
    chosen = ["--table", f"{DATABASE}.{rng.choice(names)}"] if names and rng.random() < 0.5 else []
    run.loader("initial-load", "--again", *chosen)


def loaded_beside_deltas(run: Run, rng: Random) -> None:
    """Tables are read anew while deltas go on, and staged files that nobody needs are removed."""
    names = run.reader.tables()
    chosen = ["--table", f"{DATABASE}.{rng.choice(names)}"] if names and rng.random() < 0.5 else []
    with ThreadPoolExecutor(1) as pool:
        ended = pool.submit(run.loader, "initial-load", "--again", *chosen)
        sleep(rng.uniform(0, 5))
        while not ended.done():
            run.loader(*rng.choice([("run",), ("run",), ("maintain",), ("purge", "--older-than", "0h")]))
        ended.result()


def maintained(run: Run, rng: Random) -> None:
    """Tables are maintained, and staged files that nobody needs are removed."""
    run.loader("maintain")
    run.loader("purge", "--older-than", "0h")


def limited(run: Run, rng: Random) -> None:
    """The configuration changes: how much of the log an interval takes, and how it is staged."""
    limits = rng.choice(["{ transactions = 3 }", "{ bytes = 2000 }", "{ transactions = 1000 }"])
    run.command.extra = [f"interval = {limits}", f'update_rows = "{rng.choice(["after", "both"])}"']
    run.command.configure()


def reconfigured(run: Run, rng: Random) -> None:
    """A table is left out of the captured ones, or those that were come back."""
    names = run.reader.tables()
    run.command.excluded = [] if run.command.excluded or not names else [rng.choice(names)]
    run.say(f"  not captured from now on: {run.command.excluded}")
    run.command.configure()
    if rng.random() < 0.5:
        run.loader("run")


def paused(run: Run, rng: Random) -> None:
    """Tables are paused, deltas run or are killed, files are purged, and the tables are resumed."""
    names = [name for name in run.reader.tables() if re.fullmatch(r"\w+", name) and name not in run.command.excluded]
    patterns = [f"{DATABASE}.{name}" for name in rng.sample(names, min(2, len(names)))]
    if not names or rng.random() < 0.2:
        patterns = [run.command.pattern]
    ended = run.command.run("pause", *patterns, "--reason", "chaos")
    if ended.code:
        run.say(f"  pause refused: {[one['why'] for one in ended.errors]}")  # a writer has renamed the table
        return
    run.say(f"  paused: {patterns}")
    run.loader("run")
    if rng.random() < 0.5:
        maintained(run, rng)
    if rng.random() < 0.5:
        loader_killed(run, rng)
    run.loader("run")
    run.loader("resume", run.command.pattern)


def slowed(run: Run, rng: Random) -> None:
    """Tables are merged once in an hour, while deltas run; then with every delta again."""
    run.command.every = "1h"
    run.command.configure()
    for _ in range(rng.randint(1, 3)):
        run.loader("run")
    if rng.random() < 0.5:
        maintained(run, rng)
    run.command.every = ""
    run.command.configure()


def several(run: Run, rng: Random) -> None:
    """Two of the other faults happen in one round."""
    for fault in rng.sample(
        [one for one in FAULTS if one not in {*BEFORE, nothing, several, loaded_while_commits_wait}], 2
    ):
        run.say(f"  {fault.__name__}:")
        fault(run, rng)


def failed_over(run: Run, rng: Random) -> None:
    """The replica takes over, with or without a delta since; the old server becomes its replica."""
    if not run.has_replica():
        return
    run.say("  the replica takes over")
    run.fail_over()
    if rng.random() < 0.5:
        run.loader("run")


def primary_lost(run: Run, rng: Random) -> None:
    """The server dies for good while it is written to, and the replica takes over with what it has."""
    if not run.has_replica():
        return
    seconds = rng.uniform(0, 12)
    run.say(f"  the server is lost {seconds:.1f} s after the start of a delta")
    with ThreadPoolExecutor(1) as pool:
        ended = pool.submit(run.loader, "run")
        sleep(seconds)
        run.lose_server()
        ended.result()


def damaged(run: Run, rng: Random) -> None:
    """Rows in the warehouse are deleted, duplicated or changed, and a replay corrects them."""
    if run.scenario.catalog != "sqlite" or len(run.quiet.stops) < 2:
        return
    position, seqno = rng.choice(run.quiet.stops[:-1])  # nothing is newer than the last one
    for name in rng.sample(names := run.loaded_with_key(), min(2, len(names))):
        if done := damage(rng, run.command.home, name, seqno, run.reader.key(name)):
            run.say(f"  damage to {done}")
            run.replay(position, name)


BEFORE = (failed_over, damaged)
"""Faults that need quiet writers and the last comparison: they happen before a round."""

FAULTS: dict[Callable[[Run, Random], None], int] = {
    paused: 3, slowed: 2, nothing: 3, deltas: 3, loader_killed: 4, load_killed: 1, server_killed: 2, rotated: 2,
    loaded_again: 2, loaded_beside_deltas: 2, maintained: 2, limited: 1, reconfigured: 2, failed_over: 2, damaged: 2,
    log_purged: 2, several: 3, primary_lost: 1, loaded_while_commits_wait: 0,
}  # fmt: skip
"""Each fault and how often it happens; 0 for one that is also a part of another."""
