#!/bin/bash
# Removes the tests' containers, with their volumes, that are older than N hours: clean.sh [N], default 3, 0 = all.
# Tests remove their own; what is left belongs to a run that was killed.
set -euo pipefail
limit=$(($(date +%s) - ${1:-3} * 3600))
docker ps -a --filter label=likectl.test --format '{{.ID}} {{.CreatedAt}}' | while read -r id day clock zone _; do
  if [ "$(date -d "$day $clock $zone" +%s)" -le "$limit" ]; then docker rm -fv "$id"; fi
done
