#!/bin/bash
# Holds a real server (bin/likectl on embedded SQLite) against its own /openapi.json with generated requests: every answer has
# a documented status, media type, headers and body, and none is a 5xx. It runs twice, with a user's token and with a
# service's, and fails too when an operation never answered 2xx: then nothing of it was looked at.
set -euo pipefail
cd "$(dirname "$0")/.."
version=4.32.5
seconds=35 # of each of the two runs
venv=$PWD/.cache/schemathesis-$version

python3 -c 'import ensurepip, venv' 2>/dev/null || testcontainers/images/apt.sh python3 python3-venv
if ! [ -x "$venv/bin/schemathesis" ]; then
  rm -rf "$venv"
  python3 -m venv "$venv"
  "$venv/bin/pip" install --quiet --disable-pip-version-check "schemathesis==$version" || { rm -rf "$venv"; exit 1; }
fi

work=$(mktemp -d); server=
trap '[ $? = 0 ] || { [ ! -f "$work/log" ] || tail -30 "$work/log"; } >&2
  [ -z "$server" ] || { kill $server && wait $server; } || true; rm -rf "$work"' EXIT
user=$(bin/likectl token --create --data "$work/data" --user 42)
service=$(bin/likectl token --data "$work/data" --user 1 --scope service)
: >"$work/log" # before anybody looks for it
LIKECTL_LIMITS_ENABLED=false bin/likectl serve --data "$work/data" --listen 127.0.0.1:0 --admin-listen 127.0.0.1:0 >"$work/log" 2>&1 &
server=$!
api=$(timeout 30 grep -m1 -oE 'API +http://[0-9.:]+' <(tail -n +1 -f --pid=$server "$work/log") | grep -oE 'http:.*') 
curl -fsS "$api/openapi.json" >"$work/openapi.json" # from a file, since schemathesis leaves out the address it loads from

# Version tokens are signed: a generated one is always a 400, so most requests carry one that was given out. With a
# service's token the user is named in nearly every call that can, with a user's, which may not, hardly ever.
token=$(curl -fsS -o /dev/null -D - "$api/v1/like" -H "Authorization: Bearer $user" --json '{"item_id":"1","item_type":"post"}' |
  tr -d '\r' | sed -n 's/^like-version: //Ip')
cat >"$work/config.toml" <<END
[dictionaries.versions]
values = ["$token"]
[dictionaries.ids]
values = ["1", "42", "9223372036854775807"]
[parameters]
"header.Like-Version" = {dictionary = "versions", probability = 0.9}
"header.Like-Min-Version" = {dictionary = "versions", probability = 0.9}
"query.user_id" = {dictionary = "ids", probability = 0.9}
END

generate() { # NAME TOKEN PROBABILITY-OF-USER_ID ARGUMENT...
  local name=$1 bearer=$2 named=$3; shift 3
  sed -i "s/\(^\"query.user_id\".*probability = \)[0-9.]*/\1$named/" "$work/config.toml"
  (cd "$work" && "$venv/bin/schemathesis" --config-file "$work/config.toml" run "$work/openapi.json" --url "$api" --no-color \
    --header "Authorization: Bearer $bearer" --phases examples,coverage,fuzzing --max-examples 30 --max-time "$seconds" \
    --checks not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance,response_headers_conformance \
    --warnings off --request-timeout 10 --generation-database none --report ndjson --report-ndjson-path "$work/$name.ndjson" "$@") # it leaves a folder where it runs
}
generate user "$user" 0.05 --exclude-path '/v1/likes:batch' --exclude-tag catalog
generate service "$service" 0.9
kill -0 $server # it is still there
! grep -E 'level=ERROR|"level":"ERROR"' "$work/log" || exit 1

python3 - "$work/openapi.json" "$work"/*.ndjson <<'END'
import collections, json, sys

spec = json.load(open(sys.argv[1]))
seen = {f"{method.upper()} {path}": collections.Counter() for path, item in spec["paths"].items() for method in item}
for file in sys.argv[2:]:
    for line in open(file):
        recorder = json.loads(line).get("ScenarioFinished", {}).get("recorder", {})
        for key, interaction in recorder.get("interactions", {}).items():
            case, response = recorder["cases"][key]["value"], interaction.get("response")
            name = f"{case['method'].upper()} {case['path']}"
            if name in seen and response:
                seen[name][response["status_code"]] += 1
for name, statuses in seen.items():
    print(f"{name:24}", " ".join(f"{status}:{n}" for status, n in sorted(statuses.items())))
never = [name for name, statuses in seen.items() if not any(200 <= status < 300 for status in statuses)]
if never:
    sys.exit("never answered 2xx: " + ", ".join(never))
END
