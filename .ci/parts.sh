# Sourced by what CI runs: parts that say how long they took, and commands beside them. `$logs` is a folder.

# What commands beside the parts take of a processor is counted in the part in which they end. A part does not begin
# once one of them has failed.
part() {
    title=$1
    for each in $running; do [ ! -e "$logs/${each%:*}.failed" ] || finish "${each%:*}"; done
    begun=$(date +%s)
    count_processor_seconds
    used_before=$used
    echo "== $title"
    shift
    "$@"
    count_processor_seconds
    echo "== $title: $(($(date +%s) - begun)) seconds, $((used - used_before)) of processor time"
}

# Of all commands that have ended. A pipe would run `times` in a shell that has none.
count_processor_seconds() {
    times >"$logs/times.$$"
    used=$(awk 'NR == 2 { gsub("s", ""); split($1 "m" $2, t, "m"); print int(60 * (t[1] + t[3]) + t[2] + t[4]) }' "$logs/times.$$")
}

running=
trap 'stop_running' EXIT
trap 'exit 143' TERM
trap 'exit 130' INT HUP

stop_running() {
    for each in $running; do kill -- -${each#*:} 2>/dev/null || true; done
}

# `begin NAME COMMAND...`: runs a command beside the parts that follow, to which it leaves the processors.
begin() {
    log=$logs/$1.log
    running="$running $1"
    failure=$logs/$1.failed
    shift
    setsid nice -n 5 sh -c 'failure=$1 && shift && "$@" || { touch "$failure"; exit 1; }' sh "$failure" "$@" >"$log" 2>&1 &
    running="$running:$!"
}

# `finish NAME...`: waits for these commands, prints what they printed, and fails if one of them failed.
finish() {
    failed=
    others=
    for each in $running; do
        case " $* " in
        *" ${each%:*} "*)
            wait "${each#*:}" || failed="$failed ${each%:*}"
            cat "$logs/${each%:*}.log"
            ;;
        *) others="$others $each" ;;
        esac
    done
    running=$others
    [ -z "$failed" ] || { echo "failed:$failed"; return 1; }
}
