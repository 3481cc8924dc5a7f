#!/usr/bin/env bash
# Run Airflow on this checkout: SQLite, LocalExecutor, on loopback and without a password. Ctrl-C stops all it started.
#
# LOADER_CONFIG   the loader's configuration; default: that of the demo, whose server is started if it does not run
# LOADER_HOME     folder for Airflow's database and logs; default: the cache folder
# AIRFLOW_PORT    first port to try for the UI; default: 8080
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cache=${LOADER_CACHE:-$HOME/.cache/binlog-loader}
demo=$cache/demo
python=$root/.venv/bin/python
infra=$root/infra

export PATH=$root/.venv/bin:$PATH # spark-submit and python3 are looked up there
export AIRFLOW_HOME=${LOADER_HOME:-$cache}/airflow
logs=$AIRFLOW_HOME/components
parts=(api-server scheduler dag-processor triggerer)

# Every process started below inherits this mark, by which leftovers are found.
export LOADER_AIRFLOW_MARK="$$-$EPOCHREALTIME"
pids=()
own_server=

free_port() {
    "$python" - "${AIRFLOW_PORT:-8080}" <<'PY'
import socket, sys

for port in range(int(sys.argv[1]), 65536):
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            continue
        print(port)
        break
PY
}

configure() {
    local port=$1
    export AIRFLOW__API__HOST=127.0.0.1
    export AIRFLOW__API__PORT=$port
    # Tasks talk to the server at this address. Left at the default port, each of them fails with an empty log.
    export AIRFLOW__API__BASE_URL=http://127.0.0.1:$port
    export AIRFLOW__CORE__EXECUTION_API_SERVER_URL=http://127.0.0.1:$port/execution/
    export AIRFLOW__CORE__DAGS_FOLDER=$AIRFLOW_HOME/dags
    export AIRFLOW__CORE__LOAD_EXAMPLES=False
    export AIRFLOW__CORE__EXECUTOR=LocalExecutor
    export AIRFLOW__CORE__PARALLELISM=4
    export AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_ALL_ADMINS=True
    export AIRFLOW__DAG_PROCESSOR__REFRESH_INTERVAL=30 # the default hides a new DAG for five minutes
    export PYSPARK_PYTHON=$python
    export SPARK_LOCAL_IP=${SPARK_LOCAL_IP:-127.0.0.1} # else Spark listens on the outer address
    export SPARK_CONF_DIR=${SPARK_CONF_DIR:-$infra/spark}
}

# Database, DAG file, pools and connection, when one of them changed; what was edited in the UI since stays.
prepare() {
    local version stamp
    version=$("$python" -c 'from importlib.metadata import version; print(version("apache-airflow"))')
    stamp=$({ cat "$root"/dags/*.py "$infra"/airflow/*.json && cat "${LOADER_CONFIG:-/dev/null}" && echo "$version"; } |
        sha256sum)
    stamp=$AIRFLOW_HOME/.prepared-${stamp:0:16}
    mkdir -p "$AIRFLOW_HOME"
    [[ -e $stamp && -e $AIRFLOW_HOME/airflow.db ]] && return
    "$infra/step.sh" "airflow database" airflow db migrate
    "$infra/step.sh" "airflow dags and pools" loader airflow install
    touch "$stamp"
}

servers() {
    # Without the mark: the server ends last, after all that may use it.
    (cd "$root" && env -u LOADER_AIRFLOW_MARK "$python" -m infra.servers "$@" --data-dir "$demo/mysql")
}

choose_source() {
    if [[ ${LOADER_CONFIG:-$demo/loader.toml} -ef $demo/loader.toml ]]; then
        export LOADER_CONFIG=$demo/loader.toml
        if [[ -e $demo/mysql/state.json ]] && ! servers status >/dev/null; then
            own_server=yes
            servers start >/dev/null
        fi
    fi
    if [[ -z ${LOADER_CONFIG:-} ]]; then
        echo "  note: there is no configuration yet; run \`make demo\` first, or set LOADER_CONFIG to yours" >&2
    fi
}

# All that still runs of what was started: in the session of a part, or with the mark (a task may start a session).
left() {
    local stat line fields
    for stat in /proc/[0-9]*/stat; do
        { read -r line <"$stat"; } 2>/dev/null || continue
        read -r -a fields <<<"${line##*) }" # state, parent, group, session
        [[ ${fields[0]} != Z && " ${pids[*]} " == *" ${fields[3]} "* ]] && echo "${line%% *}"
    done
    grep -lsz "^LOADER_AIRFLOW_MARK=$LOADER_AIRFLOW_MARK\$" /proc/[0-9]*/environ | cut -d/ -f3
}

# Wait until nothing is left, at most the given seconds.
all_gone() {
    local deadline=$((SECONDS + $1))
    while [[ -n $(left) ]]; do
        [[ $SECONDS -lt $deadline ]] || return 1
        sleep 0.2
    done
}

# Not `airflow standalone`: it does not notice when one of its parts dies, and leaves them behind when it is killed.
start_parts() {
    local part
    mkdir -p "$logs"
    for part in "${parts[@]}"; do
        setsid airflow "$part" >"$logs/$part.log" 2>&1 </dev/null & # a session, which Ctrl-C does not reach
        pids+=("$!")
    done
}

stop_all() {
    trap '' INT TERM HUP
    set +e
    export -n LOADER_AIRFLOW_MARK # not for the commands that look for it
    echo "stopping"
    # First the parts, which end their own; what is left after a while are tasks that still run.
    kill -TERM "${pids[@]}" 2>/dev/null
    all_gone 10 || { left | xargs -r kill -TERM; } 2>/dev/null
    all_gone 10 || { left | xargs -r kill -KILL; } 2>/dev/null
    all_gone 5
    [[ -n $own_server ]] && servers stop >/dev/null
}

run() {
    local processes=() i
    choose_source
    configure "$(free_port)"
    prepare
    start_parts
    for i in "${!parts[@]}"; do processes+=("${parts[i]}=${pids[i]}"); done
    "$python" "$infra/airflow/healthy.py" "$AIRFLOW__API__BASE_URL/api/v2/monitor/health" "$logs" "${processes[@]}"
    echo "Airflow is at $AIRFLOW__API__BASE_URL (logs: $logs). DAGs start paused. Ctrl-C stops it."
    wait -n "${pids[@]}" || true
    echo "a part of Airflow ended by itself; the logs are in $logs" >&2
    exit 1
}

trap stop_all EXIT
trap 'exit 0' INT TERM HUP # the ordinary way to end it
run
