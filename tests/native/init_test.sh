#!/bin/bash
# Promises of flowos-init, each a function. usage: init_test.sh FLOWOS_INIT
set -u
top=$(mktemp -d "${TMPDIR:-/tmp}/init_test.XXXXXX")
trap 'rm -rf "$top"' EXIT
# It puts files of the run folder that are parts of file `launch` there, and becomes flowos-init.
init=$top/init
cat >"$init" <<PACK
#!/bin/bash
[ ! -d "\$1" ] || for part in env env_forwarded argv streams limits cwd stdin_lifeline cpus relay; do
  [ -e "\$1/\$part" ] || continue
  printf '%s %d\\n' \$part "\$(stat -c %s "\$1/\$part")"
  cat "\$1/\$part"
  printf '\\0'
done >"\$1/launch"
exec $1 "\$@"
PACK
chmod +x "$init"
failures=0
promise=""

complain() {
  echo "FAILED $promise: $*"
  failures=$((failures + 1))
}

same() { # WHAT EXPECTED GOT
  [ "$2" = "$3" ] || complain "$1: expected '$2', got '$3'"
}

fresh() { # a run folder with a plain environment
  run=$(mktemp -d "$top/run.XXXXXX")
  printf 'PATH=/usr/bin:/bin\0' >"$run/env"
  printf '%s' "$top" >"$run/cwd"
}

on_one_disk() { # is the run folder on a disk that is counted?
  [ -e "/sys/dev/block/$(mountpoint -d "$(stat -c %m "$run")" 2>/dev/null)/device" ]
}

end_of() { head -n 1 "$run/status.${1:-0}"; }

value_of() { sed -n "s/^$1 //p" "$run/status.0"; }

appears() { # FILE: within a minute
  for _ in $(seq 3000); do
    [ -e "$1" ] && return 0
    sleep 0.02
  done
  complain "$1 did not appear"
  return 1
}

gone() { # PID: within a minute
  for _ in $(seq 3000); do
    case $(sed 's/.*) //' "/proc/$1/stat" 2>/dev/null) in "" | Z*) return 0 ;; esac
    sleep 0.02
  done
  complain "process $1 is still there"
  kill -9 "$1"
}

an_exit_code_is_handed_on() {
  "$init" "$run" -- sh -c 'exit 3'
  same code 3 $?
  same end "exit 3" "$(end_of)"
  same stopped 0 "$(value_of stopped)"
}

an_unknown_command_is_127() {
  "$init" "$run" -- no-such-command
  same code 127 $?
  same end "error exec 2" "$(end_of)"
  [ -e "$run/started.0" ] && complain "it says that it started"
}

a_file_that_is_no_program_is_126() {
  "$init" "$run" -- /etc/passwd
  same code 126 $?
  same end "error exec 13" "$(end_of)"
  printf 'garbage' >"$top/garbage" && chmod +x "$top/garbage"
  "$init" "$run" -- ./garbage
  same code 126 $?
  same end "error exec 8" "$(end_of)"
}

a_missing_interpreter_is_told_from_a_missing_file() {
  printf '#!/no/such/shell\n' >"$top/script" && chmod +x "$top/script"
  "$init" "$run" -- "$top/script"
  same end "error interpreter 2" "$(end_of)"
}

a_missing_folder_is_an_error_of_cwd() {
  printf /no/such/folder >"$run/cwd"
  "$init" "$run" -- true
  same code 125 $?
  same end "error cwd 2" "$(end_of)"
}

a_missing_environment_is_refused() {
  rm "$run/env"
  "$init" "$run" -- true
  same code 125 $?
  same end "error env 2" "$(end_of)"
}

the_environment_is_exact() {
  printf 'PATH=/usr/bin:/bin\0A=x y$z,=\n2"q\x27``id``\0EMPTY=\0B=\xff\xfe\0' >"$run/env"
  OUTER=1 "$init" "$run" -- env -0 >"$top/out"
  cmp "$run/env" "$top/out" || complain "the environment differs"
}

a_long_environment_arrives() {
  { printf 'PATH=/usr/bin:/bin\0LONG=' && head -c 100000 /dev/zero | tr '\0' x && printf '\0'
    for i in $(seq 20000); do printf 'V%d=%d\0' "$i" "$i"; done; } >"$run/env"
  "$init" "$run" -- env -0 >"$top/out"
  cmp "$run/env" "$top/out" || complain "the environment differs"
}

what_the_launcher_passes_wins() {
  printf 'PATH=/usr/bin:/bin\0PMIX_RANK=7\0KEPT=1\0' >"$run/env"
  printf 'PMIX_\0XY' >"$run/env_forwarded"
  PMIX_RANK=1 PMIXED=2 XYZ=3 "$init" "$run" -- env >"$top/out"
  same variables "KEPT=1 PATH=/usr/bin:/bin PMIX_RANK=1 XYZ=3" "$(sort "$top/out" | xargs)"
  same end "exit 0" "$(end_of 1)"
}

the_rank_names_the_status() {
  for name in PMIX_RANK OMPI_COMM_WORLD_RANK PMI_RANK SLURM_PROCID; do
    rm -f "$run"/status.*
    env "$name=12" "$init" "$run" -- true
    same "$name" "exit 0" "$(end_of 12)"
  done
  PMIX_RANK=-1 PMI_RANK=5x "$init" "$run" -- true
  same "no number" "exit 0" "$(end_of 0)"
}

a_signal_that_ends_the_command_is_told() {
  for number in 9 15 11; do
    "$init" "$run" -- sh -c "kill -$number \$\$"
    same code $((128 + number)) $?
    same end "signal $number" "$(end_of)"
  done
}

signals_are_handed_on() {
  for name in TERM INT HUP QUIT USR1 USR2; do
    rm -f "$top/ready"
    "$init" "$run" -- sh -c "trap 'exit 9' $name; touch ready; while :; do sleep 0.02; done" &
    appears "$top/ready" && kill -s $name $!
    wait $!
    same "$name" 9 $?
  done
}

a_terminals_job_is_joined() { # the group that this shell and its children are in
  group=$(ps -o pgid= -p $$ | tr -d ' ')
  printf '%s' "$group" >"$run/group"
  "$init" "$run" -- sh -c 'ps -o pgid= -p $$ >"$0"; kill -9 $$' "$top/pgid"
  same code 137 $?
  same group "$group" "$(tr -d ' ' <"$top/pgid")"
}

a_group_of_another_session_is_not_joined() {
  setsid sh -c 'echo $$ >"$0.new"; mv "$0.new" "$0"; exec sleep 300' "$top/other" &
  appears "$top/other" || return
  cp "$top/other" "$run/group"
  "$init" "$run" -- sh -c 'ps -o pgid=,pid= -p $$ >"$0"' "$top/pgid"
  same end "exit 0" "$(end_of)"
  read -r group command <"$top/pgid"
  same group "$command" "$group"
  kill "$(cat "$top/other")"
}

a_stopped_command_goes_on_at_cont() {
  mkfifo "$top/go" # to wait without a child, whose stop between vfork and exec would hold the shell
  "$init" "$run" -- sh -c 'echo $$ >pid.new; mv pid.new pid; read -r _ <go' &
  appears "$top/pid" || return
  local pid state=""
  pid=$(cat "$top/pid")
  kill -s TSTP $!
  for _ in $(seq 3000); do
    state=$(sed 's/.*) \(.\).*/\1/' "/proc/$pid/stat")
    [ "$state" = T ] && break
    sleep 0.02
  done
  same state T "$state"
  kill -s CONT $!
  echo >"$top/go"
  wait $!
  same code 0 $?
  rm -f "$top/go" "$top/pid"
}

orphans_are_ended() {
  "$init" "$run" -- sh -c '
    (setsid sh -c "echo \$\$ >orphan.new; mv orphan.new orphan; exec sleep 300" &
     sh -c "trap \"\" HUP TERM; echo \$\$ >second.new; mv second.new second; exec sleep 300" &)
    while [ ! -e orphan ] || [ ! -e second ]; do sleep 0.01; done; exit 4'
  same code 4 $?
  gone "$(cat "$top/orphan")"
  gone "$(cat "$top/second")"
}

orphaned() { # a run with an orphan in a session of its own that has none of our streams
  rm -f "$top/orphan"
  "$init" "$run" -- sh -c '
    setsid sh -c "echo \$\$ >orphan.new; mv orphan.new orphan; exec sleep 300" </dev/null >/dev/null 2>&1 &
    exec sleep 300' &
  appears "$top/orphan"
}

what_a_killed_init_leaves_is_ended() {
  orphaned || return
  local pid
  read -r pid _ <"$run/started.0"
  kill -9 "$pid"
  wait $!
  same code 137 $?
  gone "$(cat "$top/orphan")"
  [ -e "$run/status.0" ] && complain "it says how the command ended"
}

what_a_killed_guardian_leaves_is_ended() {
  orphaned || return
  local pid
  read -r pid _ <"$run/started.0"
  kill -9 $!
  wait $!
  same code 137 $?
  gone "$(cat "$top/orphan")"
  gone "$pid"
  [ -e "$run/status.0" ] && complain "it says how the command ended"
}

many_orphans_are_ended() {
  "$init" "$run" -- sh -c 'for i in $(seq 300); do (trap "" TERM HUP; exec sleep 300) & done; echo $! >last'
  same code 0 $?
  gone "$(cat "$top/last")"
}

a_closed_fifo_means_term_then_kill() {
  for grace in 2 20 200; do # a busy machine needs long to tell it
    fresh
    mkfifo "$run/lifeline"
    exec 9<>"$run/lifeline"
    echo "$grace" >"$run/grace"
    rm -f "$top/ready.fifo"
    "$init" "$run" -- sh -c 'trap "echo told >told" TERM; touch ready.fifo; while :; do sleep 0.02; done' 9>&- &
    appears "$top/ready.fifo"
    exec 9>&-
    wait $!
    same code 137 $?
    same end "signal 9" "$(end_of)"
    same stopped 1 "$(value_of stopped)"
    [ ! -e "$top/told" ] || break
  done
  same told told "$(cat "$top/told")"
}

a_grace_below_zero_leaves_its_end_to_the_command() {
  echo -300 >"$run/grace"
  mkfifo "$run/lifeline"
  exec 9<>"$run/lifeline"
  "$init" "$run" -- sh -c 'trap "exit 1" TERM; touch ready.spared; until [ -e closed ]; do sleep 0.02; done; exit 7' 9>&- &
  appears "$top/ready.spared"
  exec 9>&-
  sleep 0.2 # it learns of it
  touch "$top/closed"
  wait $!
  same code 7 $?
  same stopped 1 "$(value_of stopped)"
}

a_stopped_command_is_ended_too() {
  echo 300 >"$run/grace"
  mkfifo "$run/lifeline"
  exec 9<>"$run/lifeline"
  "$init" "$run" -- sh -c 'touch ready.stop; kill -STOP $$; exit 0' 9>&- &
  appears "$top/ready.stop"
  exec 9>&-
  wait $!
  same code 143 $?
}

nothing_starts_for_a_supervisor_that_is_gone() {
  echo 300 >"$run/grace"
  mkfifo "$run/lifeline"
  "$init" "$run" -- touch "$top/started-anyway"
  same code 143 $?
  same end "signal 15" "$(end_of)"
  same stopped 1 "$(value_of stopped)"
  [ -e "$top/started-anyway" ] && complain "it started"
}

inherited_signal_settings_are_reset() {
  (trap '' TERM HUP PIPE CHLD USR1; exec "$init" "$run" -- grep -E 'Sig(Blk|Ign)' /proc/self/status) >"$top/out"
  same settings "SigBlk: 0000000000000000 SigIgn: 0000000000000000" "$(xargs <"$top/out")"
}

the_command_dies_with_a_killed_init() {
  "$init" "$run" -- sleep 300 &
  appears "$run/started.0" || return
  kill -9 $!
  wait $! 2>/dev/null
  gone "$(cut -d' ' -f2 "$run/started.0")"
  [ -e "$run/status.0" ] && complain "a status of a killed init"
}

what_was_used_is_told() {
  "$init" "$run" -- sh -c 'head -c 30000000 /dev/zero | tail -c 20000000 >/dev/null; sleep 0.1'
  awk '/^max_rss_bytes/ { rss = $2 } /^wall_seconds/ { wall = $2 }
       /^(user|system)_seconds/ { cpu += $2 }
       END { exit !(rss > 2e7 && rss < 1e9 && wall >= 0.1 && wall < 60 && cpu > 0) }' "$run/status.0" ||
    complain "$(cat "$run/status.0")"
}

what_the_node_did_is_told_to_a_supervisor_elsewhere() { # ours would read it here
  local data=$run/data moved
  "$init" "$run" -- true
  same cpus "" "$(value_of cpus_busy_seconds)"
  same disks "" "$(value_of disk_bytes)$(value_of own_disk_bytes)"
  : >"$run/stdin_lifeline"
  mkfifo "$run/holds"
  exec 9<>"$run/holds"
  "$init" "$run" -- dd if=/dev/zero of="$data" bs=1M count=4 conv=fsync status=none <&9
  exec 9>&-
  [ -n "$(value_of cpus_busy_seconds)" ] || complain "$(cat "$run/status.0")"
  for what in memory io; do
    [ ! -e "/proc/pressure/$what" ] || [ -n "$(value_of "${what}_stalled_seconds")" ] ||
      complain "nothing of pressure of $what"
  done
  [ "$(stat -fc %T "$run")" != tmpfs ] && [ -e /proc/self/io ] || return
  moved=$(value_of own_disk_bytes)
  [ "${moved:-0}" -ge 4194304 ] || complain "wrote '$moved' bytes"
  on_one_disk || return
  awk -v all="$(value_of disk_bytes)" 'BEGIN { exit !(all >= 4194304) }' ||
    complain "the disks moved '$(value_of disk_bytes)' bytes"
}

no_half_written_file_stays() {
  "$init" "$run" -- true
  same files "cwd env launch started.0 status.0" "$(ls -A "$run" | xargs)"
}

wrong_use_is_told() {
  "$init" 2>"$top/err"
  same code 125 $?
  grep -q '^usage: ' "$top/err" || complain "no usage line"
  "$init" /no/such/folder -- true 2>"$top/err"
  same code 125 $?
  grep -q 'cannot open /no/such/folder' "$top/err" || complain "$(cat "$top/err")"
}

a_held_container_is_entered() { # in which $top/mark is another file
  command -v unshare >/dev/null || return 0
  unshare --user --map-root-user --mount true 2>/dev/null || return 0
  echo outside >"$top/mark"
  echo inside >"$top/other"
  unshare --user --map-root-user --mount sh -c \
    'mount --bind "$1/other" "$1/mark" && : >"$1/held" && exec "$2" --hold' - "$top" "$init" &
  local holder=$!
  appears "$top/held" || return
  echo "$holder $(stat -Lc %i "/proc/$holder/ns/mnt")" >"$run/enter"
  same seen inside "$("$init" "$run" -- cat "$top/mark")"
  same end "exit 0" "$(end_of)"
  same user 0 "$("$init" "$run" -- id -u)" # of that namespace
  echo "$holder 1" >"$run/enter"
  "$init" "$run" -- touch "$top/run-outside"
  same code 125 $?
  same end "error enter 116" "$(end_of)" # ESTALE: that process is another one by now
  [ -e "$top/run-outside" ] && complain "the command ran outside"
  kill "$holder"
  wait "$holder"
  same "holder's end" 143 $?
}

for promise in $(declare -F | awk '{ print $3 }' |
  grep -vxE 'complain|same|fresh|on_one_disk|end_of|value_of|appears|gone|orphaned'); do
  fresh
  "$promise"
done
if [ "$failures" -gt 0 ]; then
  echo "$failures failures"
  exit 1
fi
