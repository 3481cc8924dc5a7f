#!/usr/bin/env bash
# Run uv in the version this project is built with; it is fetched with pip into the cache folder at the first use, and
# must have one of the digests in uv.txt.
set -euo pipefail

infra=$(dirname "$0")
version=$(sed -n 's/^uv==\([0-9.]*\).*/\1/p' "$infra/uv.txt")
cache=${LOADER_CACHE:-$HOME/.cache/binlog-loader}
uv=$cache/bin/uv-$version

# Some distributions ship Python without what makes virtual environments, in a package of its own.
need_venv() {
    local python=$1 package
    "$python" -c 'import ensurepip' 2>/dev/null && return
    package=python$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')-venv
    if [[ $(id -u) != 0 ]] || ! command -v apt-get >/dev/null; then
        echo "error: $python cannot make virtual environments" >&2
        echo "  what to do: sudo apt-get update && sudo apt-get install -y $package" >&2
        exit 1
    fi
    "$infra/apt.sh" update
    "$infra/apt.sh" install -y --no-install-recommends "$package"
}

fetch() {
    local python temporary
    python=$("$infra/python.sh")
    need_venv "$python"
    temporary=$(mktemp -d "$cache/bin/.uv.XXXXXX")
    # shellcheck disable=SC2064  # the folder of now
    trap "rm -rf '$temporary'" EXIT
    "$python" -m venv "$temporary/venv"
    "$temporary/venv/bin/pip" install --disable-pip-version-check --no-deps --only-binary=:all: --require-hashes \
        -r "$infra/uv.txt"
    mv "$temporary/venv/bin/uv" "$uv"
}

if [[ ! -x $uv ]]; then
    mkdir -p "$cache/bin"
    (flock 9 && { [[ -x $uv ]] || fetch >&2; }) 9>"$cache/bin/.uv.lock"
fi
exec "$uv" "$@"
