#!/bin/sh
# Make sure that Java 17 or newer is there for Spark: JAVA_HOME, else PATH, else (as root) a package of the distribution.
set -eu

# Print the major version of a java program; nothing when there is no such program.
major() {
    "$1" -version 2>&1 | sed -n 's/.* version "\([0-9]*\).*/\1/p' | head -n 1
}

good() {
    found=$(major "$1")
    [ -n "$found" ] && [ "$found" -ge 17 ]
}

if [ -n "${JAVA_HOME:-}" ]; then
    good "$JAVA_HOME/bin/java" && exit 0
    echo "error: JAVA_HOME is $JAVA_HOME, which holds no Java 17 or newer" >&2
    echo "  what to do: point it to one, or unset it to let this script find one" >&2
    exit 1
fi
good java && exit 0

if ! command -v apt-get >/dev/null; then
    echo "error: Spark needs Java 17 or newer on PATH, and this system has no apt-get to install it with" >&2
    echo "  what to do: install a Java 17 or 21 runtime and put it on PATH" >&2
    exit 1
fi

# Print the package to install; without package lists, the one that exists everywhere.
package() {
    for version in 17 21; do
        if [ -n "$(apt-cache madison "openjdk-$version-jre-headless" 2>/dev/null)" ]; then
            echo "openjdk-$version-jre-headless"
            return
        fi
    done
    echo default-jre-headless
}

if [ "$(id -u)" != 0 ]; then
    echo "error: Spark needs Java 17 or newer on PATH, and only root can install it" >&2
    echo "  what to do: sudo apt-get update && sudo apt-get install -y $(package)" >&2
    exit 1
fi

apt=$(dirname "$0")/apt.sh
"$apt" update
"$apt" install -y --no-install-recommends "$(package)"
good java && exit 0
echo "error: the Java of this distribution is older than 17" >&2
echo "  what to do: install a Java 17 or 21 runtime and put it on PATH" >&2
exit 1
