#!/bin/bash
# Runs inside the container: one process per node of a Redis Cluster, all in one network namespace.
#   rediscluster.sh run PORT... -- ARGS      start all nodes and stay
#   rediscluster.sh node PORT                start one node (again), with the ARGS of run
#   rediscluster.sh signal NAME PORT         send a signal to one node
set -euo pipefail
args=/data/args
# Every node dials the others from a loopback address of its own (127.0.1.N, N = position of its port), so that a
# partition can drop one node's outgoing packets.
node() {
  local port=$1 dir=/data/$1 extra; mapfile -t extra <$args
  mkdir -p "$dir"
  redis-server --port "$port" --protected-mode no --dir "$dir" --daemonize yes --pidfile "$dir/pid" --logfile "$dir/log" \
    --bind-source-addr "127.0.1.$(($(grep -nx "$port" /data/ports | cut -d: -f1)))" \
    --cluster-enabled yes --cluster-config-file nodes.conf --cluster-node-timeout 1000 --cluster-announce-ip 127.0.0.1 \
    --cluster-require-full-coverage no --cluster-allow-reads-when-down yes --cluster-replica-validity-factor 0 \
    --repl-diskless-sync yes --repl-diskless-sync-delay 0 --save "" "${extra[@]}"
}
case $1 in
run)
  shift; : >/data/ports
  while [ "$1" != -- ]; do echo "$1" >>/data/ports; shift; done
  shift; printf '%s\n' "$@" >$args
  for port in $(cat /data/ports); do node "$port"; done
  trap 'exit 0' TERM
  while :; do sleep 1 & wait $! || true; done ;; # waiting also reaps nodes that were killed
node) node "$2" ;;
signal) kill -s "$2" "$(cat "/data/$3/pid")" ;;
esac
