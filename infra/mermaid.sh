#!/usr/bin/env bash
# Print the path of mermaid.min.js, which draws the diagrams of the site. The first call fetches it with npm into the
# cache folder; it must have the digest below. Material for MkDocs would load it from a CDN whenever a page is read.
set -euo pipefail

version=11.12.0
digest=07e37dfa97b337ccc85365d57eddf99b9706f09db3b59b260d0333b23b343c4b
cache=${LOADER_CACHE:-$HOME/.cache/binlog-loader}
file=$cache/mermaid/$version/mermaid.min.js

fetch() {
    local temporary
    if ! command -v npm >/dev/null; then
        echo "error: the diagrams of the site need npm, which fetches mermaid $version" >&2
        echo "  what to do: sudo apt-get install -y npm" >&2
        exit 1
    fi
    mkdir -p "$(dirname "$file")"
    temporary=$(mktemp -d "$cache/mermaid/.fetch.XXXXXX")
    # shellcheck disable=SC2064  # the folder of now
    trap "rm -rf '$temporary'" EXIT
    npm pack --silent --pack-destination "$temporary" "mermaid@$version" >/dev/null
    tar -xzf "$temporary/mermaid-$version.tgz" -C "$temporary" package/dist/mermaid.min.js
    echo "$digest  $temporary/package/dist/mermaid.min.js" | sha256sum --check --status ||
        { echo "error: mermaid $version does not have the digest in infra/mermaid.sh" >&2; exit 1; }
    mv "$temporary/package/dist/mermaid.min.js" "$file"
}

[[ -f $file ]] || fetch
echo "$file"
