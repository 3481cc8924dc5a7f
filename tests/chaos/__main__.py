"""`python -m tests.chaos --seed 1 --minutes 10`: run seeds one after the other until the time is over or one fails."""

from __future__ import annotations

import argparse
import random
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import boto3

from infra.s3server import S3Server, start_s3
from infra.servers import start_server
from tests.chaos.access.command import BUCKET
from tests.chaos.faults.choice import FAULTS
from tests.chaos.quiet_point import Failure
from tests.chaos.reduction import reduce
from tests.chaos.run import Run
from tests.chaos.scenario import FEATURES, LOCAL, Scenario, scenario


def main() -> int:
    """Run the command; the exit code is 1 after a failure."""
    asked = _arguments()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that servers are stopped
    deadline, seed = time.monotonic() + asked.minutes * 60, asked.seed or random.randrange(10**6)
    while True:
        chosen = scenario(
            seed, asked.server, asked.writers, frozenset(asked.without), tuple(asked.faults), asked.master
        )
        if not attempt(chosen, deadline, asked.rounds, asked.keep, asked.script, asked.reduce):
            return 1
        if time.monotonic() > deadline or asked.script:
            return 0
        seed += 1


def attempt(
    chosen: Scenario,
    deadline: float,
    rounds: int = 12,
    keep: Path | None = None,
    script: Path | None = None,
    reduce_seconds: float = 900,
) -> bool:
    """Run one scenario until the deadline or so many rounds; print and keep what failed."""
    say(str(chosen))
    folder = Path(tempfile.mkdtemp(prefix=f"chaos-{chosen.seed}-", dir=keep))
    with ExitStack() as cleanup:
        s3 = cleanup.enter_context(_bucket(folder / "buckets")) if chosen.staging == "s3" else None
        server = cleanup.enter_context(start_server(chosen.kind, folder / "server", chosen.options))
        run = Run(chosen, server, folder, say, s3)
        try:
            if script:
                run.play(script.read_text(encoding="utf-8"))
                return True
            run.begin()
            for number in range(1, rounds + 1):
                if time.monotonic() > deadline:
                    break
                run.round(number)
        except Failure as failure:
            run.history.write(folder / "history.sql")
            say(f"FAILED {chosen}\n{failure}\n  the statements: {folder / 'history.sql'}")
            server.kill()
            if not script and reduce_seconds:
                _reduced(run, failure, folder, reduce_seconds)
            say(f"  again: python -m tests.chaos {chosen.arguments}")
            return False
        finally:
            server.kill()
            if run.replica:
                run.replica.kill()
            run.server.kill()
    return True


@contextmanager
def _bucket(folder: Path) -> Iterator[S3Server]:
    """An S3 server with an empty bucket."""
    folder.mkdir()
    with start_s3(folder) as server:
        one = server.environment
        boto3.client(
            "s3", endpoint_url=server.endpoint, region_name=one["AWS_DEFAULT_REGION"],
            aws_access_key_id=server.access_key, aws_secret_access_key=server.secret_key,
        ).create_bucket(Bucket=BUCKET)  # fmt: skip
        yield server


def _reduced(run: Run, failure: Failure, folder: Path, seconds: float) -> None:
    """Print a short script that fails as the run did, if one is found."""
    script = reduce(run.scenario, run.history, run.before, failure, folder, seconds)
    if script is None:
        return say("  no script of one interval fails in the same way; the history and the faults above tell more")
    (folder / "reduced.sql").write_text(f"{script}\n", encoding="utf-8")
    return say(f"  reduced to {len(script)} statements: {folder / 'reduced.sql'}\n{script}")


def say(text: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} {text}", flush=True)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    parser.add_argument("--seed", type=int, default=0, help="the first seed; a random one by default")
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--rounds", type=int, default=12, help="rounds of one seed")
    parser.add_argument("--reduce", type=float, default=900, help="seconds to make a failure small; 0 for not at all")
    parser.add_argument("--server", choices=["mysql", "mariadb"])
    parser.add_argument("--writers", type=int, default=0)
    parser.add_argument("--without", nargs="*", choices=FEATURES, default=[])
    parser.add_argument("--faults", nargs="*", choices=[one.__name__ for one in FAULTS], default=[], help="only these")
    parser.add_argument("--master", default=LOCAL, help="of Spark, such as local-cluster[2,1,1024]")
    parser.add_argument("--script", type=Path, help="a reduced script to run instead, with the options of the seed")
    parser.add_argument("--keep", type=Path, help="a folder for what a failure leaves; the temporary folder by default")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
