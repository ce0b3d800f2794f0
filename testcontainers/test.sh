#!/bin/bash
# Runs every check on a fresh Debian machine (root, Go installed); `make test` calls it. The cheapest checks come first, the
# first failure ends the run, and a table of all parts and their times is printed in any case. Nothing is skipped.
# To add a part, add a `part NAME COMMAND...` line below.
set -uo pipefail
cd "$(dirname "$0")/.."
logs=.cache/test; mkdir -p "$logs"
export PATH=$PATH:/usr/sbin:/sbin

names=() seconds=() results=()
started=$SECONDS
table() {
  local code=$?
  kill $(jobs -p) 2>/dev/null # background parts that the run no longer waits for
  printf '\n%-34s %8s  %s\n' part seconds result
  local i; for i in "${!names[@]}"; do printf '%-34s %8d  %s\n' "${names[i]}" "${seconds[i]}" "${results[i]}"; done
  printf '%-34s %8d  %s\n' total $((SECONDS - started)) "$([ $code = 0 ] && echo ok || echo FAILED)"
}
trap table EXIT
trap 'exit 130' INT TERM

part() { # NAME COMMAND...
  local name=$1 begun=$SECONDS; shift
  printf '\n=== %s\n' "$name"
  "$@"; local code=$?
  names+=("$name") seconds+=($((SECONDS - begun))) results+=("$([ $code = 0 ] && echo ok || echo FAILED)")
  [ $code = 0 ] || exit 1
}
background() { # NAME COMMAND...: starts now, in its own part later
  local name=$1; shift
  "$@" >"$logs/$name.log" 2>&1 &
  declare -g "pid_$name=$!"
}
finish() { # NAME: waits for a background command and shows what it said
  local pid=pid_$1 code
  wait "${!pid}"; code=$?
  cat "$logs/$1.log"
  return $code
}

# Packages whose tests reach the containers package, directly or through a suite.
container_packages() {
  go list -test -f '{{$p := .ImportPath}}{{range .Deps}}{{if eq . "likectl/testcontainers"}}{{$p}}{{"\n"}}{{end}}{{end}}' ./... |
    sed -n 's/\.test$//p' | sort -u
}
race() { go test -race -count=1 -timeout 20m "$@"; }

# The race detector needs a C compiler, durability is shown by a trace of system calls, README uses curl.
packages=()
command -v gcc >/dev/null || packages+=(gcc libc6-dev)
command -v strace >/dev/null || packages+=(strace)
command -v curl >/dev/null || packages+=(curl ca-certificates)
[ ${#packages[@]} = 0 ] || part packages testcontainers/images/apt.sh "${packages[@]}"
background tools make -s tools
background images testcontainers/images/setup.sh

part format make -s format-check
part modules go mod tidy -diff
part build make -s build
part vet go vet ./...
# benchmarks/recount imports a million events: without the race detector, under which pure-Go SQLite is ten times slower.
with_containers=$(container_packages | grep -v '^likectl/benchmarks/')
part unit race $(comm -23 <(go list ./... | grep -v '^likectl/benchmarks/' | sort) <(echo "$with_containers"))
part tools finish tools
part lint make -s lint
part fuzz make -s fuzz
part images finish images
# One row per folder (testcontainers, pkg/store, tiers/tier1 ...), one package at a time: they share two cores with the servers.
for group in $(cut -d/ -f2-3 <<<"$with_containers" | sort -u); do
  part "containers: $group" race -p 1 -skip '^TestCrash' $(grep -E "^likectl/$group(/|\$)" <<<"$with_containers")
done
# These print what they did: each kill with what it met, and which cases are covered or due.
part "crashes" race -v -run '^(TestCrash|TestEveryCase)' ./tiers/tiertest
# One package at a time: some compare what they measure.
part "benchmarks and 1,000,000 events" go test -count=1 -p 1 -v ./benchmarks/...
# Generated requests against the built server: 70 s, and the time to get schemathesis the first time.
part schemathesis testcontainers/schemathesis.sh
part readme testcontainers/readme.sh
