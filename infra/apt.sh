#!/bin/sh
# apt-get, without questions and one at a time: the steps of setup run side by side, and apt-get update does not wait
# for another one. usage: infra/apt.sh ARGUMENTS OF apt-get
set -eu

cache=${LOADER_CACHE:-$HOME/.cache/binlog-loader}
mkdir -p "$cache"
DEBIAN_FRONTEND=noninteractive exec flock --close "$cache/.apt.lock" apt-get -o DPkg::Lock::Timeout=300 "$@"
