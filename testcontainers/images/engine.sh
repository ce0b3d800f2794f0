#!/bin/bash
# Makes a Docker engine answer: uses the one that runs, else installs Debian's docker.io and starts dockerd by hand.
# State (images, pid, log) lives in $LIKECTL_DOCKER, outside the clone, so that a fresh clone finds the images again.
set -euo pipefail
W=${LIKECTL_DOCKER:-/var/tmp/likectl-docker}
export PATH=$PATH:/usr/sbin:/sbin

answers() { timeout 5 docker version --format '{{.Server.Version}}' >/dev/null 2>&1; }
# A killed dockerd may stay as a zombie for a while, so a pid alone proves no life.
alive() { [ -n "${1:-}" ] && [ -r "/proc/$1/status" ] && ! grep -q '^State:[[:space:]]*Z' "/proc/$1/status"; }

missing=()
command -v dockerd >/dev/null || answers || missing+=(docker.io)
command -v iptables >/dev/null || missing+=(iptables) # dockerd needs it, and so does Cut in the tests
if [ ${#missing[@]} -gt 0 ]; then
  "$(dirname "$0")/apt.sh" "${missing[@]}"
fi
answers && exit 0

mkdir -p "$W/exec/containerd"
# A dockerd that was killed leaves its containerd and pid files behind; the next one would wait for them in vain.
pidfile=$W/exec/containerd/containerd.pid
if [ -f "$pidfile" ]; then
  old=$(cat "$pidfile")
  if alive "$old" && tr '\0' ' ' <"/proc/$old/cmdline" | grep -q "$W/exec/containerd"; then
    kill "$old"
    for _ in $(seq 50); do alive "$old" || break; sleep 0.1; done
  fi
fi
rm -f "$W/dockerd.pid" "$W"/exec/containerd/{containerd.pid,containerd.sock,containerd.sock.ttrpc,containerd-debug.sock}

# --ip: published ports listen on loopback only.
setsid dockerd --data-root "$W/data" --exec-root "$W/exec" --pidfile "$W/dockerd.pid" \
  -H unix:///var/run/docker.sock --ip 127.0.0.1 >"$W/dockerd.log" 2>&1 </dev/null &
for _ in $(seq 150); do answers && exit 0; sleep 0.2; done
echo "dockerd did not answer within 30 s; the end of $W/dockerd.log:" >&2
tail -20 "$W/dockerd.log" >&2
exit 1
