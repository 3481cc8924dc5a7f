"""`python -m loader`: the command."""

from __future__ import annotations

from loader.cli.app import main

if __name__ == "__main__":
    main()
