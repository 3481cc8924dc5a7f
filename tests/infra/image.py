"""The image of the examples without a container engine: its Dockerfile is executed in a folder.

The folder is the root of the image: paths such as `/opt` become paths in it. A virtual environment is its Python.
Commands of `SYSTEM` need root or change the machine, so they are not executed.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path, PurePosixPath

SYSTEM = ("apt-get ", "useradd ", "chown ", "rm -rf /var/lib/apt")
_PLACES = re.compile(r"(?<![\w.])/(?=(?:opt|lake|tmp/install|etc/loader|etc/mysql)\b)")


def instructions(text: str) -> Iterator[tuple[str, str]]:
    """Yield the instructions of a Dockerfile with their arguments."""
    lines = "\n".join(line for line in text.splitlines() if not line.startswith("#"))
    for line in re.sub(r"\\\n\s*", "", lines).splitlines():
        if line:
            name, _, rest = line.partition(" ")
            yield name, rest


def commands(run: str) -> list[str]:
    """Return the commands of a RUN instruction."""
    return [command.strip() for command in run.split("&&")]


def is_sent(path: str, ignored: str) -> bool:
    """Return whether a file is part of the context, by the text of the file of ignored paths. The last match counts."""
    parts = PurePosixPath(path)
    names = [path, *(str(parent) for parent in parts.parents if parent.name)]
    sent = True
    for pattern in (line for line in ignored.splitlines() if line and not line.startswith("#")):
        if any(fnmatch(name, pattern.removeprefix("!")) for name in names):
            sent = pattern.startswith("!")
    return sent


class Image:
    """An image that is built in a folder.

    Args:
        root: the folder; it has the virtual environment `venv`.
        context: the folder that COPY copies from.
    """

    def __init__(self, root: Path, context: Path) -> None:
        self.root, self.folder, self._context = root, root, context
        outside = {name: value for name, value in os.environ.items() if not name.startswith(("AIRFLOW", "LOADER"))}
        checkout = str(Path(__file__).resolve().parents[2])
        path = ":".join(folder for folder in os.environ["PATH"].split(":") if not folder.startswith(checkout))
        self.environment = outside | {"PATH": f"{root}/venv/bin:{path}", "VIRTUAL_ENV": f"{root}/venv"}
        self.environment.pop("PYTHONDONTWRITEBYTECODE", None)
        self.command: list[str] = []
        self.not_executed: list[str] = []

    def placed(self, text: str) -> str:
        """Return a text with the image's paths as paths in the folder."""
        return _PLACES.sub(f"{self.root}/", text)

    def build(self, dockerfile: str) -> None:
        """Execute the instructions after FROM."""
        for name, rest in instructions(dockerfile):
            if name == "RUN":
                self._run(rest)
            elif name == "COPY":
                self._copy([word for word in rest.split() if not word.startswith("--")])
            elif name == "ENV":
                pairs = (word.partition("=") for word in shlex.split(rest))
                self.environment |= {variable: self.placed(value) for variable, _, value in pairs}
            elif name == "WORKDIR":
                self.folder = Path(self.placed(rest))
            elif name == "CMD":
                self.command = json.loads(rest)
            else:
                assert name in {"FROM", "USER"}, f"{name} is not understood here"

    def run(self, argv: list[str], **more: str) -> str:
        """Run a program of the image, and return what it prints."""
        environment = self.environment | more
        done = subprocess.run(argv, env=environment, cwd=self.folder, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{shlex.join(argv)}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    def _run(self, rest: str) -> None:
        for command in commands(rest):
            if command.startswith(SYSTEM):
                self.not_executed.append(command)
            else:
                self.run(["sh", "-c", self.placed(command)])

    def _copy(self, words: list[str]) -> None:
        target = self.folder / self.placed(words[-1])
        for pattern in words[:-1]:
            found = list(self._context.glob(pattern))
            assert found, f"nothing to copy: {pattern}"
            for source in found:
                if source.is_dir():
                    shutil.copytree(source, target, dirs_exist_ok=True)
                else:
                    target.mkdir(parents=True, exist_ok=True)
                    shutil.copy(source, target)
