#!/bin/bash
# Runs the commands that README.md shows: every ```sh block that follows a line `<!-- tested -->`, in order, in one shell at
# the root of the clone with bin/ first in PATH. The first command that fails, fails. Background jobs end with the shell.
set -euo pipefail
cd "$(dirname "$0")/.."
script=$(awk '
  /^<!-- tested -->$/ { tested = 1; next }
  tested && /^```sh$/ { inside = 1; tested = 0; next }
  inside && /^```$/   { inside = 0; next }
  inside              { print }
  /[^[:space:]]/      { tested = 0 }' README.md)
[ -n "$script" ] || { echo "README.md shows no tested command" >&2; exit 1; }
export PATH=$PWD/bin:$PATH
# A server that does not come up would be waited for without end.
timeout 600 bash -euxo pipefail -c 'trap "kill \$(jobs -p) 2>/dev/null || true" EXIT
'"$script"
