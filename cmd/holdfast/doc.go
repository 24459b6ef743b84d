// Command holdfast runs commands under distributed locks on Redis, and shows and frees locks. docs/command.md of the
// repository says what it guarantees.
//
//	holdfast exec backup:db -- backup.sh         one at a time, on all hosts
//	holdfast exec -n deploy -- deploy.sh         refuse a second one at once
//	holdfast once report:42 -- report.sh         never again within 24 hours
//	holdfast elect scheduler -- scheduler        on one host, the leader
//
// # Usage
//
//	Usage: holdfast <command> [flags]
//
//	Distributed locks on Redis for everything that has a shell.
//
//	Commands:
//	  exec            Run a command while a lock is held.
//	  once            Run a command at most once for a key, on all hosts.
//	  elect           Run a command while this host leads.
//	  ls              List the locks that are held.
//	  show            Show the holders, the waiters and the record of a name.
//	  watch           Show a name whenever it changes.
//	  top             Show all locks, again and again.
//	  unlock          Take a lock from its holders.
//	  records         List what once has recorded.
//	  forget          Delete a record, so that another run may begin.
//	  resolve         Record that a run of unknown outcome has been done.
//	  http-key        Print the name of the lock or record of a guarded HTTP
//	                  request.
//	  msg-key         Print the name of the record of a message.
//	  digest          Find the name behind a digest of the log.
//	  cron ls         List the jobs.
//	  cron pause      Pause a job on all hosts.
//	  cron resume     Let a paused job run again.
//	  cron history    Show the last runs of a job.
//	  completion      Print the completion of a shell: bash, zsh or fish.
//	  man             Print the manual page.
//
//	Flags:
//	  -h, --help    Show context-sensitive help.
//
//	Flags of all commands:
//	      --redis=URL             URL of Redis. Defaults to $HOLDFAST_REDIS,
//	                              then $REDIS_URL, then redis://localhost:6379.
//	                              A password belongs into one of these variables,
//	                              into $HOLDFAST_REDIS_PASSWORD or into a file:
//	                              other users can read arguments.
//	      --redis-user=USER       User of Redis, in place of the user in the URL
//	                              ($HOLDFAST_REDIS_USER).
//	      --password-file=FILE    File with the password of Redis
//	                              ($HOLDFAST_REDIS_PASSWORD_FILE).
//	      --tls-ca=FILE           Certificates of the authorities to trust
//	                              ($HOLDFAST_TLS_CA).
//	      --tls-cert=FILE         Certificate of this client ($HOLDFAST_TLS_CERT).
//	      --tls-key=FILE          Key of that certificate ($HOLDFAST_TLS_KEY).
//	      --prefix="lock:"        Prefix of the names in Redis, as of
//	                              core.WithPrefix ($HOLDFAST_PREFIX).
//	      --no-prefix             Names have no prefix, as those of Redisson.
//	      --json                  Print JSON: one object, or one on each line.
//	  -v, --verbose               Show the warnings of the library, and why once
//	                              skips a run, on standard error.
//	      --version               Print the version.
//
//	Run "holdfast <command> --help" for more information on a command.
package main
