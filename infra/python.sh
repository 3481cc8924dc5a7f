#!/bin/sh
# Print the Python to build the environment with: 3.11 to 3.13, the default one if it fits.
set -eu

# The real program, not the shim of a version manager nor that of an activated environment.
show='import sys
if not (3, 11) <= sys.version_info[:2] <= (3, 13): sys.exit(1)
print(getattr(sys, "_base_executable", sys.executable))'

for name in python3 python3.13 python3.12 python3.11; do
    if found=$("$name" -c "$show" 2>/dev/null); then
        echo "$found"
        exit 0
    fi
done

echo "error: Python 3.11, 3.12 or 3.13 is needed; python3 is: $(python3 --version 2>&1 || true)" >&2
echo "  what to do: put python3.13, python3.12 or python3.11 on PATH, on Debian and Ubuntu by" >&2
echo "  sudo apt-get update && sudo apt-get install -y python3.13 python3.13-venv (or the version that apt has)" >&2
exit 1
