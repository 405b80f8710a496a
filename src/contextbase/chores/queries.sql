-- name: leader
SELECT term, holder, server, taken_at, expires_at, expires_at > clock_timestamp() AS is_alive,
       extract(epoch FROM expires_at - clock_timestamp())::float AS seconds_left
FROM chore_leader

-- name: take_lead
-- Nothing comes back when somebody else leads. This locks the row even then: ask `leader` before.
INSERT INTO chore_leader (term, holder, server, expires_at)
VALUES (1, $1, $2, clock_timestamp() + make_interval(secs => $3))
ON CONFLICT (is_only) DO UPDATE
SET term = chore_leader.term + 1, holder = excluded.holder, server = excluded.server, taken_at = clock_timestamp(),
    expires_at = clock_timestamp() + make_interval(secs => $3)
WHERE chore_leader.expires_at <= clock_timestamp()
RETURNING term

-- name: renew_lead
-- Nothing comes back when another term has begun. One that expired, and that nobody took, goes on.
UPDATE chore_leader SET expires_at = clock_timestamp() + make_interval(secs => $3)
WHERE term = $1 AND holder = $2
RETURNING true

-- name: release_lead
-- The row stays, so that terms go on growing.
UPDATE chore_leader SET expires_at = clock_timestamp() WHERE term = $1 AND holder = $2

-- name: fence
-- Until the transaction ends nobody else can take the lead. The leader itself can renew its lease meanwhile. A leader that
-- stands still in the middle of it loses its connection after $3 milliseconds, or nobody could ever follow it.
SELECT set_config('idle_in_transaction_session_timeout', $3, true) FROM chore_leader
WHERE term = $1 AND holder = $2
FOR KEY SHARE

-- name: record_run
INSERT INTO chores (name, server, every, started_at, ended_at, error, failures, next_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, clock_timestamp() + $8)
ON CONFLICT (name) DO UPDATE
SET server = excluded.server, every = excluded.every, started_at = excluded.started_at, ended_at = excluded.ended_at,
    error = excluded.error, failures = excluded.failures, next_at = excluded.next_at

-- name: recorded_runs
SELECT name, server, every, started_at, ended_at, error, failures, next_at,
       greatest(next_at - clock_timestamp(), interval '0') AS due_in
FROM chores
ORDER BY name
