#!/bin/sh
# Print the path of a Chromium: the one on PATH, else (as root) that of the distribution's package.
set -eu

found() {
    for name in chromium google-chrome-stable google-chrome; do
        command -v "$name" && return
    done
    return 1
}

found && exit 0

if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
    echo "error: the tests of Airflow's forms need Chromium on PATH, and only root can install it" >&2
    echo "  what to do: sudo apt-get update && sudo apt-get install -y chromium" >&2
    exit 1
fi

apt=$(dirname "$0")/apt.sh
{ "$apt" update && "$apt" install -y --no-install-recommends chromium; } >&2
found
