# A bash task of the kill test: the same lines as chaos_marks.py writes.
# Usage: chaos_bash.sh SECONDS
name="$AIRFLOW_CTX_DAG_ID.$AIRFLOW_CTX_DAG_RUN_ID"
task="$AIRFLOW_CTX_TASK_ID"
began() { cut -d' ' -f22 /proc/$1/stat; }
at() { local up; read -r up _ < /proc/uptime; echo "${up/./}0000000"; }
mark() {
  printf '{"what":"%s","at":%s,"pid":%s,"began":%s,"dag":"%s","run":"%s","task":"%s","try":%s,"attempt":"%s","boot":"%s"%s}\n' \
    "$1" "$(at)" $$ "$(began $$)" "$AIRFLOW_CTX_DAG_ID" "$AIRFLOW_CTX_DAG_RUN_ID" "$task" "$AIRFLOW_CTX_TRY_NUMBER" \
    "$TRADEWIND_ATTEMPT" "$(cat /proc/sys/kernel/random/boot_id)" "$2" >> "$CHAOS_MARKS/$name"
  sync "$CHAOS_MARKS/$name"
}
exec 9<> "$CHAOS_MARKS/locks/$name.$task"
flock -n 9 || mark overlap ",\"holder\":\"$(head -c 200 <&9)\""
echo "$TRADEWIND_ATTEMPT pid $$" > "$CHAOS_MARKS/locks/$name.$task"
mark start
sleep "$1"
mark end ',"how":"ok"'
echo "$TRADEWIND_ATTEMPT"
