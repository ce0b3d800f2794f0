#!/bin/bash
# From a fresh Debian machine (root) to a running Docker engine that has the images the tests use:
#   setup.sh [IMAGE...]        default: postgres:15 redis:7 apache/kafka:4.1.2 cassandra:5.0
# An image that is there is left alone. Else it is pulled, and where no image registry answers it is built here under the
# same name from Debian packages and Maven Central jars (a stand-in with the real server binaries, see ../README.md).
# Idempotent; about 2 minutes from nothing, well under a second when all is there.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
W=${LIKECTL_DOCKER:-/var/tmp/likectl-docker}
mkdir -p "$W"
export PATH=$PATH:/usr/sbin:/sbin
images=("$@"); [ $# -gt 0 ] || images=(postgres:15 redis:7 apache/kafka:4.1.2 cassandra:5.0)

t0=${EPOCHREALTIME/./}
say() { local us=$((${EPOCHREALTIME/./} - t0)); printf '[%3d.%d s] %s\n' $((us / 1000000)) $((us / 100000 % 10)) "$*"; }
quiet() { # LOG COMMAND...: the output is shown only when the command fails
  local log=$W/$1.log; shift
  "$@" >"$log" 2>&1 || { echo "$* went wrong; the end of $log:" >&2; tail -25 "$log" >&2; return 1; }
}

# One setup at a time: two would debootstrap and build the same things. dockerd must not inherit the lock.
exec 9>"$W/lock"; flock 9
"$here/engine.sh" 9>&-; say "docker engine answers"
"$here/clean.sh" >/dev/null

dir_of() {
  case $1 in
    postgres:15) echo postgres ;;
    redis:7) echo redis ;;
    apache/kafka:4.1.2) echo kafka ;;
    cassandra:5.0) echo cassandra ;;
    *) echo "unknown image $1: known are postgres:15 redis:7 apache/kafka:4.1.2 cassandra:5.0" >&2; exit 2 ;;
  esac
}
context_hash() { (cd "$here" && find "$1" jre -type f | LC_ALL=C sort | xargs sha256sum | sha256sum | cut -c1-16); }
# A built image carries the hash of its build context and is built anew when that changes; a pulled one has no such label.
present() {
  local label; label=$(docker image inspect -f '{{index .Config.Labels "likectl.context"}}' "$1" 2>/dev/null) || return 1
  [ -z "$label" ] || [ "$label" = "$(context_hash "$2")" ]
}
built_here() { [ -n "$(docker image inspect -f '{{index .Config.Labels "likectl.context"}}' "$1" 2>/dev/null)" ]; }

missing=()
for image in "${images[@]}"; do
  dir=$(dir_of "$image")
  present "$image" "$dir" || missing+=("$image")
done
if [ ${#missing[@]} -eq 0 ]; then say "all ${#images[@]} images are there"; exit 0; fi

# The first pull decides: where it fails at once or hangs there is no registry, and the rest is not tried.
registry=unknown
pull() {
  [ "$registry" != no ] && ! built_here "$1" || return 1
  local patience=600; [ "$registry" = yes ] || patience=30
  if timeout "$patience" docker pull -q "$1" >"$W/pull.log" 2>&1 9>&-; then registry=yes; say "pulled $1"; return 0; fi
  [ "$registry" = yes ] || { registry=no; say "no image registry answers ($(tail -c 120 "$W/pull.log" | tr -d '\n')): building stand-ins"; }
  return 1
}
to_build=()
for image in "${missing[@]}"; do pull "$image" || to_build+=("$image"); done

ctx=$W/ctx
jars() { # DIR: the server's jars from Maven Central, once per pom
  local libs=$ctx/$1/libs stamp; stamp=$(sha256sum <"$here/$1/pom.xml")
  [ "$(cat "$ctx/$1.jars" 2>/dev/null)" != "$stamp" ] || return 0
  rm -rf "$libs"
  quiet "mvn-$1" mvn -q -B -f "$here/$1/pom.xml" dependency:copy-dependencies -DincludeScope=runtime -DoutputDirectory="$libs"
  rm -f "$libs"/*-{osx,windows,linux-aarch_64,linux-riscv64}*.jar
  echo "$stamp" >"$ctx/$1.jars"
}
base() { # debian:bookworm: pulled, or made with debootstrap
  docker image inspect debian:bookworm >/dev/null 2>&1 && return
  if pull debian:bookworm; then return; fi
  command -v debootstrap >/dev/null || "$here/apt.sh" debootstrap
  local root; root=$(mktemp -d "$W/rootfs.XXXX")
  quiet debootstrap debootstrap --variant=minbase bookworm "$root"
  rm -rf "$root"/var/cache/apt/archives/*.deb "$root"/var/lib/apt/lists/*_* "$root"/usr/share/{doc,man,info,locale}/*
  tar -C "$root" --numeric-owner -c . | docker import - debian:bookworm >/dev/null
  rm -rf --one-file-system "$root"
  say "made debian:bookworm"
}
build() { # TAG DIR
  mkdir -p "$ctx/$2"; cp -r "$here/$2/." "$ctx/$2/"
  DOCKER_BUILDKIT=0 quiet "build-$2" docker build -q --label likectl.context="$(context_hash "$2")" -t "$1" "$ctx/$2"
  say "built $1"
}

if [ ${#to_build[@]} -gt 0 ]; then
  mkdir -p "$ctx"
  java_dirs=()
  for image in "${to_build[@]}"; do
    case $image in apache/kafka:*|cassandra:*) java_dirs+=("$(dir_of "$image")") ;; esac
  done
  if [ ${#java_dirs[@]} -gt 0 ]; then
    command -v mvn >/dev/null || { "$here/apt.sh" maven openjdk-17-jdk-headless; say "maven installed"; }
    # The downloads wait on the network, the base image on the processor: side by side.
    (for dir in "${java_dirs[@]}"; do jars "$dir"; done) 9>&- & jars_pid=$!
  fi
  base
  for image in "${to_build[@]}"; do
    dir=$(dir_of "$image")
    case $dir in
      kafka|cassandra)
        if [ -n "${jars_pid:-}" ]; then wait "$jars_pid"; jars_pid=; say "jars are there"; build likectl/jre:17 jre; fi ;;
    esac
    build "$image" "$dir"
  done
  docker image prune -f >/dev/null
fi
say "all images are there"
