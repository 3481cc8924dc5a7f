#!/usr/bin/env bash
# Run one step of a set-up quietly: one line with its time, or the end of its log and where to find the whole.
# usage: infra/step.sh NAME COMMAND...
set -euo pipefail

name=$1
shift
logs=${LOADER_CACHE:-$HOME/.cache/binlog-loader}/logs
log=$logs/${name// /-}.log
mkdir -p "$logs"

start=${EPOCHREALTIME/,/.} # some locales have a decimal comma
code=0
"$@" >"$log" 2>&1 </dev/null || code=$?
seconds=$(awk -v a="$start" -v b="${EPOCHREALTIME/,/.}" 'BEGIN { printf "%.1f", b - a }')

if [[ $code == 0 ]]; then
    printf '  %-20s %6s s\n' "$name" "$seconds"
else
    # One write, so that the lines of steps that run beside it do not fall between.
    printf '  %-20s %6s s  FAILED, see %s\n%s\n' "$name" "$seconds" "$log" "$(tail -n 20 "$log" | sed 's/^/    /')" >&2
fi
exit "$code"
