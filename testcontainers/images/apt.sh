#!/bin/bash
# Installs Debian packages without their recommendations: apt.sh PACKAGE... Quiet unless it goes wrong.
set -euo pipefail
log=$(mktemp); trap 'rm -f "$log"' EXIT
export DEBIAN_FRONTEND=noninteractive
{ apt-get update -qq && apt-get install -y -qq --no-install-recommends "$@"; } >"$log" 2>&1 || {
  echo "apt-get install $* went wrong:" >&2; tail -20 "$log" >&2; exit 1; }
