-- name: insert_session
INSERT INTO agent_sessions
    (id, owner_id, agent_id, project_id, folder, actions, provider, model, options, land, title, chat_id,
     profile)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)

-- part: sessions_of_owners
SELECT s.*, o.kind AS owner_kind, o.name AS owner_name, o.is_owner AS owner_is_owner, a.name AS agent_name,
       p.name AS app
FROM agent_sessions s JOIN principals o ON o.id = s.owner_id JOIN principals a ON a.id = s.agent_id
LEFT JOIN apps p ON p.id = s.app_id

-- name: session_by_id
-- Also one that is deleted, as long as its machine holds something of it.
-- use: sessions_of_owners
WHERE s.id = $1

-- name: session_by_chat
-- use: sessions_of_owners
WHERE s.owner_id = $1 AND s.chat_id = $2 AND s.state <> 'deleted'

-- name: session_of_agent
-- use: sessions_of_owners
WHERE a.kind = 'agent' AND a.name = $2 AND s.owner_id = $1 AND s.state <> 'deleted'

-- name: lock_session
-- Whoever changes what a session has in the queue does it under this lock, which comes before all others.
-- use: sessions_of_owners
WHERE s.id = $1
FOR NO KEY UPDATE OF s

-- name: sessions_of_owner
-- Newest first, before $2; those of project $3, or (NULL) all; $5: only those whose files cannot be stored.
-- use: sessions_of_owners
WHERE s.owner_id = $1 AND s.state <> 'deleted' AND ($2::uuid IS NULL OR s.id < $2)
  AND ($3::uuid IS NULL OR s.project_id = $3)
  AND (NOT $5 OR EXISTS (SELECT FROM session_workers w WHERE w.session_id = s.id AND w.alert IS NOT NULL))
ORDER BY s.id DESC
LIMIT $4

-- name: update_session
-- What is NULL stays.
UPDATE agent_sessions
SET state = coalesce($2, state), pinned = coalesce($3, pinned), title = coalesce($4, title),
    updated_at = clock_timestamp()
WHERE id = $1

-- name: sdk_session_ids
SELECT sdk_session_ids FROM agent_sessions WHERE id = $1

-- name: put_sdk_session
UPDATE agent_sessions SET sdk_session_ids = sdk_session_ids || jsonb_build_object($2::text, $3::text)
WHERE id = $1 AND sdk_session_ids ->> $2 IS DISTINCT FROM $3

-- name: delete_session
DELETE FROM agent_sessions WHERE id = $1

-- name: take_run_number
UPDATE agent_sessions
SET last_run = last_run + 1, last_active_at = $2, updated_at = clock_timestamp(),
    title = CASE title WHEN '' THEN $3 ELSE title END
WHERE id = $1
RETURNING last_run

-- name: insert_run
INSERT INTO agent_runs
    (id, session_id, number, prompt, provider, model, profile, options, idempotency_key, request_hash, mode)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)

-- name: run_by_key
SELECT id, request_hash FROM agent_runs WHERE session_id = $1 AND idempotency_key = $2

-- name: run_by_id
SELECT * FROM agent_runs WHERE id = $1

-- name: lock_run
SELECT * FROM agent_runs WHERE id = $1 FOR NO KEY UPDATE

-- name: lock_runs
-- In order, so that two who lock several do not wait for each other.
SELECT * FROM agent_runs WHERE id = ANY ($1::uuid[]) ORDER BY id FOR NO KEY UPDATE

-- name: runs_of_session
-- Newest first, before a number.
SELECT * FROM agent_runs WHERE session_id = $1 AND ($2::integer IS NULL OR number < $2) ORDER BY number DESC LIMIT $3

-- name: shown_runs_of_session
-- The same without those behind which the conversation went back, and those that another run took in.
SELECT * FROM agent_runs
WHERE session_id = $1 AND ($2::integer IS NULL OR number < $2) AND rewound_at IS NULL
  AND reason IS DISTINCT FROM 'steered'
ORDER BY number DESC LIMIT $3

-- name: open_runs_of_session
-- Those that have not ended, the oldest first.
SELECT r.* FROM run_queue q JOIN agent_runs r ON r.id = q.run_id WHERE q.session_id = $1 ORDER BY q.number

-- name: move_run
-- Nothing comes back when the run is in another state or at another attempt by now.
UPDATE agent_runs
SET state = $4, state_at = clock_timestamp(),
    phases = phases || jsonb_build_object(
        state, coalesce((phases ->> state)::bigint, 0)
               + round(extract(epoch FROM clock_timestamp() - state_at) * 1000)::bigint),
    reason = CASE WHEN $5::text IS NOT NULL THEN $5 WHEN $4 = 'queued' THEN reason END,
    message = CASE WHEN $4 = 'canceled' AND cancel_why IS NOT NULL THEN cancel_why
                   WHEN $5::text IS NOT NULL THEN $6 WHEN $4 = 'queued' THEN message END,
    runtime_version = coalesce($7, runtime_version), image = coalesce($8, image),
    cli_version = coalesce($9, cli_version), landed = coalesce($10, landed),
    started_at = CASE WHEN $4 = 'running' THEN coalesce(started_at, clock_timestamp()) ELSE started_at END,
    ended_at = CASE WHEN $4 IN ('succeeded', 'failed', 'canceled') THEN clock_timestamp() END
WHERE id = $1 AND attempt = $2 AND state = $3
RETURNING *

-- name: put_run_facts
UPDATE agent_runs
SET runtime_version = coalesce($3, runtime_version), image = coalesce($4, image),
    cli_version = coalesce($5, cli_version), landed = coalesce($6, landed)
WHERE id = $1 AND attempt = $2

-- name: sessions_without_leave
-- Those at work for people who are disabled, or have no role left in the session's project or to use its app; and for
-- agents that those people made.
SELECT s.id FROM agent_sessions s
JOIN principals p ON p.id = s.owner_id AND NOT p.is_owner
JOIN users u ON u.principal_id = coalesce(p.made_by, p.id)
LEFT JOIN app_sessions t ON t.session_id = s.id
LEFT JOIN apps a ON a.id = t.app_id
WHERE s.state <> 'deleted'
  AND (EXISTS (SELECT FROM run_queue q WHERE q.session_id = s.id)
       OR EXISTS (SELECT FROM session_workers w WHERE w.session_id = s.id AND w.desired_state = 'running'))
  AND (u.disabled_at IS NOT NULL
       OR NOT EXISTS (SELECT FROM user_role_bindings b
                      WHERE b.principal_id = u.principal_id
                        AND (b.role = 'platform_admin'
                             OR (b.scope_kind = 'project' AND b.scope_id = s.project_id::text)
                             OR (a.id IS NOT NULL AND b.scope_kind = 'platform')
                             OR (b.scope_kind = 'app' AND b.scope_id = a.name)
                             OR (b.scope_kind = 'project' AND b.scope_id = a.name || '/' || t.project))))
ORDER BY s.id

-- name: request_cancel
-- Once; whoever asks again changes nothing.
UPDATE agent_runs
SET cancel_requested_at = coalesce(cancel_requested_at, clock_timestamp()),
    cancel_why = CASE WHEN cancel_requested_at IS NULL THEN $2 ELSE cancel_why END
WHERE id = $1

-- name: is_canceled
SELECT cancel_requested_at IS NOT NULL FROM agent_runs WHERE id = $1

-- name: take_turn
-- Each owner's runs get turns one after the other. An owner that had nothing queued starts where the others are, so
-- that nobody saves up turns, and nobody's backlog delays another's first run.
INSERT INTO run_turns AS t (owner_id, next_turn)
VALUES ($1, coalesce((SELECT min(turn) FROM run_queue WHERE state = 'ready'), 0) + 1)
ON CONFLICT (owner_id) DO UPDATE
SET next_turn = greatest(t.next_turn, coalesce((SELECT min(turn) FROM run_queue WHERE state = 'ready'), t.next_turn)) + 1
RETURNING next_turn - 1

-- name: enqueue_run
-- Behind the runs of its session that have not ended, and on the machine that has the session's folder.
INSERT INTO run_queue (run_id, session_id, owner_id, number, state, priority, turn, machine)
SELECT $1, $2, $3, $4,
       CASE WHEN EXISTS (SELECT FROM run_queue WHERE session_id = $2) THEN 'behind' ELSE 'ready' END,
       $5, $6, (SELECT machine FROM session_workers WHERE session_id = $2 AND state <> 'deleted')

-- name: queue_place
SELECT q.*, (SELECT count(*) FROM run_queue o
             WHERE q.state = 'ready' AND o.state = 'ready'
               AND (-o.priority, o.turn, o.run_id) < (-q.priority, q.turn, q.run_id)) AS ahead
FROM run_queue q WHERE q.run_id = $1

-- name: lock_queued
SELECT * FROM run_queue WHERE run_id = $1 FOR UPDATE

-- name: attempts_of
SELECT attempts FROM run_queue WHERE run_id = $1

-- name: queue_counts
SELECT state, count(*) AS runs FROM run_queue GROUP BY state

-- name: claim_runs
-- Best first. The function is in the migration 0041.
SELECT (run).*, lease_until FROM claim_runs($1, $2, $3, $4, $5)

-- name: sessions_by_id
-- use: sessions_of_owners
WHERE s.id = ANY ($1::uuid[])

-- name: beat
-- These runs of the machine go on; which of them somebody wants to end. A run that does not come back belongs to
-- somebody else by now. One whose lease is over, and that nobody took, goes on.
WITH held AS (
    SELECT q.run_id, r.cancel_requested_at IS NOT NULL AS is_canceled
    FROM unnest($2::uuid[], $3::integer[]) AS mine (run_id, attempt)
    JOIN agent_runs r ON r.id = mine.run_id AND r.attempt = mine.attempt
    JOIN run_queue q ON q.run_id = mine.run_id AND q.state = 'claimed' AND q.claimed_by = $1
    FOR NO KEY UPDATE OF q
)
UPDATE run_queue q SET lease_until = clock_timestamp() + make_interval(secs => $4)
FROM held WHERE q.run_id = held.run_id
RETURNING q.run_id, held.is_canceled

-- name: holds_run
-- Whether machine $3 still works on attempt $2: its row in the queue stays as it is until the transaction ends.
SELECT true FROM run_queue q JOIN agent_runs r ON r.id = q.run_id
WHERE q.run_id = $1 AND q.state = 'claimed' AND r.attempt = $2
FOR NO KEY UPDATE OF q

-- name: started
UPDATE run_queue SET starting = false WHERE run_id = $1 AND starting

-- name: return_to_queue
-- The next attempt, from $2 seconds from now on. With $3 on any machine.
UPDATE run_queue
SET state = 'ready', claimed_by = NULL, lease_until = NULL, starting = false, parked_reason = NULL,
    attempts = attempts + $4, last_error = coalesce($5, last_error),
    not_before = clock_timestamp() + make_interval(secs => $2),
    machine = CASE WHEN $3 THEN NULL
                   ELSE (SELECT w.machine FROM session_workers w
                         WHERE w.session_id = run_queue.session_id AND w.state <> 'deleted') END
WHERE run_id = $1

-- name: park
-- Nobody claims it until it is taken back into the queue.
UPDATE run_queue
SET state = 'parked', parked_reason = $2, claimed_by = NULL, lease_until = NULL, starting = false
WHERE run_id = $1 AND state <> 'behind'
RETURNING true

-- name: steering_runs
-- Messages for the working turns of sessions $1, the oldest first.
SELECT q.session_id, q.run_id FROM run_queue q JOIN agent_runs r ON r.id = q.run_id
WHERE q.session_id = ANY ($1::uuid[]) AND q.state = 'behind' AND r.mode = 'steer' AND r.cancel_requested_at IS NULL
ORDER BY q.number

-- name: steered_prompts
SELECT id, prompt FROM agent_runs WHERE session_id = $1 AND id = ANY ($2::uuid[]) AND mode = 'steer'

-- name: lock_steering
-- Messages of a session that its working turn has taken: those that still wait.
SELECT q.run_id FROM run_queue q JOIN agent_runs r ON r.id = q.run_id
WHERE q.session_id = $1 AND q.run_id = ANY ($2::uuid[]) AND q.state = 'behind' AND r.mode = 'steer'
ORDER BY q.number
FOR UPDATE OF q

-- name: take_steering
UPDATE agent_runs
SET state = 'succeeded', state_at = clock_timestamp(), reason = 'steered', message = $2,
    started_at = clock_timestamp(), ended_at = clock_timestamp()
WHERE id = ANY ($1::uuid[])
RETURNING *

-- name: leave_queue
DELETE FROM run_queue WHERE run_id = $1

-- name: promote_next
-- The next run of the session is first now.
UPDATE run_queue
SET state = 'ready',
    machine = (SELECT machine FROM session_workers WHERE session_id = $1 AND state <> 'deleted')
WHERE run_id = (SELECT run_id FROM run_queue WHERE session_id = $1 AND state = 'behind' ORDER BY number LIMIT 1)
  AND NOT EXISTS (SELECT FROM run_queue WHERE session_id = $1 AND state <> 'behind')

-- name: expired_runs
-- Claimed runs whose machine has not beaten for long; the database's clock decides.
SELECT q.run_id, q.session_id, q.attempts, r.attempt
FROM run_queue q JOIN agent_runs r ON r.id = q.run_id
WHERE q.state = 'claimed' AND q.lease_until < clock_timestamp()
ORDER BY q.lease_until
LIMIT $1

-- name: is_expired
SELECT true FROM run_queue WHERE run_id = $1 AND state = 'claimed' AND lease_until < clock_timestamp() FOR UPDATE

-- name: free_lost_machines
-- Runs that wait for a machine that is lost, or that stopped $1 seconds ago and is not back, may go to any other.
UPDATE run_queue q SET machine = NULL
WHERE q.state = 'ready' AND q.machine IS NOT NULL
  AND NOT EXISTS (SELECT FROM machines m WHERE m.name = q.machine
                  AND greatest(m.expires_at, m.seen_at + make_interval(secs => $1)) > clock_timestamp())

-- name: worker_by_session
SELECT * FROM session_workers WHERE session_id = $1

-- name: put_worker
-- The machine's word: it has the session's folder and sandbox now.
INSERT INTO session_workers (session_id, machine, container_id, workspace_s3_prefix, executor_version, last_active_at)
VALUES ($1, $2, $3, $4, $5, $6)
ON CONFLICT (session_id) DO UPDATE
SET machine = excluded.machine, container_id = excluded.container_id, executor_version = excluded.executor_version,
    state = 'running', desired_state = 'running', stopped_at = NULL, lost_at = NULL,
    last_active_at = greatest(session_workers.last_active_at, excluded.last_active_at), updated_at = clock_timestamp()

-- name: workers_of_machine
SELECT * FROM session_workers WHERE machine = $1 AND state <> 'deleted' ORDER BY session_id

-- name: touch_worker
UPDATE session_workers
SET last_active_at = greatest(last_active_at, $2), desired_state = 'running', updated_at = clock_timestamp()
WHERE session_id = $1

-- name: use_worker
-- One that is to stop stops all the same.
UPDATE session_workers SET last_active_at = greatest(last_active_at, $2), updated_at = clock_timestamp()
WHERE session_id = $1 AND desired_state = 'running'

-- name: sync_worker
-- One that has stopped is stored: that it is stored again before it is removed makes it nothing less.
UPDATE session_workers
SET last_sync_status = $2, last_sync_error = $3,
    last_sync_at = CASE WHEN $2 = 'success' THEN $4 ELSE last_sync_at END,
    sync_failures = CASE WHEN $2 = 'success' THEN 0 ELSE sync_failures END,
    alert = CASE WHEN $2 = 'success' THEN NULL ELSE alert END, updated_at = clock_timestamp()
WHERE session_id = $1 AND (state = 'running' OR $2 = 'success')

-- name: session_alerts
SELECT w.session_id, w.alert
FROM session_workers w JOIN agent_sessions s ON s.id = w.session_id AND s.state <> 'deleted'
WHERE w.alert IS NOT NULL ORDER BY w.session_id LIMIT 1000

-- name: count_failed_sync
-- One more in a row; with $2 of them there is an alert.
UPDATE session_workers
SET sync_failures = sync_failures + 1, alert = CASE WHEN sync_failures + 1 >= $2 THEN $3 ELSE alert END,
    updated_at = clock_timestamp()
WHERE session_id = $1
RETURNING sync_failures

-- name: settle_worker
-- The machine has stopped or removed it. The schema refuses that for what is not stored.
UPDATE session_workers
SET state = $2, stopped_at = coalesce(stopped_at, $3), container_id = CASE $2 WHEN 'deleted' THEN NULL ELSE container_id END,
    updated_at = clock_timestamp()
WHERE session_id = $1

-- name: lose_worker
UPDATE session_workers
SET state = 'deleted', desired_state = 'deleted', lost_at = $2, stopped_at = coalesce(stopped_at, $2),
    container_id = NULL, updated_at = clock_timestamp()
WHERE session_id = $1

-- name: end_worker_sandbox
-- Its folder stays, as it is.
UPDATE session_workers SET container_id = NULL, updated_at = clock_timestamp() WHERE session_id = $1

-- name: sessions_without_project
-- Those of these sessions whose project was deleted.
SELECT s.id FROM agent_sessions s JOIN projects p ON p.id = s.project_id
WHERE s.id = ANY ($1::uuid[]) AND p.deleted_at IS NOT NULL

-- name: remake_worker
-- Its machine makes the session's folder again: until `put_worker`, nobody takes what is there for the session's own.
UPDATE session_workers
SET state = 'running', desired_state = 'running', stopped_at = NULL, lost_at = $2, container_id = NULL,
    updated_at = clock_timestamp()
WHERE session_id = $1

-- name: want_worker
UPDATE session_workers
SET desired_state = $2,
    sync_requested_at = CASE WHEN $2 = 'running' THEN sync_requested_at ELSE coalesce($3, sync_requested_at) END,
    updated_at = clock_timestamp()
WHERE session_id = $1

-- name: request_sync
UPDATE session_workers SET sync_requested_at = $2, updated_at = clock_timestamp() WHERE session_id = $1

-- name: stop_idle_workers
-- Workers that nobody has used since $1, that are not pinned, and whose sessions have no run that has not ended.
UPDATE session_workers w SET desired_state = 'stopped', sync_requested_at = $2, updated_at = clock_timestamp()
FROM agent_sessions s
WHERE s.id = w.session_id AND w.state = 'running' AND w.desired_state = 'running' AND w.last_active_at < $1
  AND NOT s.pinned AND NOT EXISTS (SELECT FROM run_queue q WHERE q.session_id = w.session_id)

-- name: remove_stopped_workers
-- Workers that stopped before $1, and whose last sync worked: nothing is removed that is not stored.
UPDATE session_workers w SET desired_state = 'deleted', updated_at = clock_timestamp()
FROM agent_sessions s
WHERE s.id = w.session_id AND w.state = 'stopped' AND w.desired_state = 'stopped' AND w.stopped_at < $1
  AND w.last_sync_status = 'success' AND NOT EXISTS (SELECT FROM run_queue q WHERE q.session_id = w.session_id)

-- name: request_syncs
-- Workers whose last snapshot is older than their last use, and than $1: one more, as of $2.
UPDATE session_workers SET sync_requested_at = $2, updated_at = clock_timestamp()
WHERE state = 'running' AND lost_at IS NULL AND coalesce(last_sync_at, created_at) < $1
  AND (last_sync_at IS NULL OR last_sync_at < last_active_at)
  AND (sync_requested_at IS NULL OR sync_requested_at < $1)

-- name: runs_to_fold
-- At most $2 that ended $1 seconds ago: whoever followed them has read the pieces of their texts.
SELECT id, session_id FROM agent_runs
WHERE NOT is_folded AND ended_at < clock_timestamp() - make_interval(secs => $1)
ORDER BY ended_at LIMIT $2
FOR UPDATE SKIP LOCKED

-- name: folded
UPDATE agent_runs SET is_folded = true WHERE id = ANY ($1::uuid[])

-- name: deleted_sessions
-- Those of which no machine holds anything any more.
SELECT s.id FROM agent_sessions s LEFT JOIN session_workers w ON w.session_id = s.id
WHERE s.state = 'deleted' AND (w.session_id IS NULL OR w.state = 'deleted')
  AND NOT EXISTS (SELECT FROM run_queue q WHERE q.session_id = s.id)
LIMIT $1

-- name: claimed_runs
-- Those that machine $1 worked on when its last process ended; it goes on with them.
SELECT r.*, q.lease_until FROM run_queue q JOIN agent_runs r ON r.id = q.run_id
WHERE q.state = 'claimed' AND q.claimed_by = $1
ORDER BY q.turn

-- name: landed_before
-- What became of the changes of the run before this one.
SELECT landed FROM agent_runs WHERE session_id = $1 AND number < $2 AND rewound_at IS NULL ORDER BY number DESC LIMIT 1

-- name: insert_snapshot
INSERT INTO session_snapshots (id, session_id, run_id, message_id, project_id, epoch, base_seq, reason, files, bytes,
                               sdk_session_ids, verified_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, clock_timestamp())

-- name: insert_snapshot_files
-- In order of hash, as a purge locks contents: so the two cannot deadlock.
INSERT INTO session_snapshot_files (snapshot_id, path, position, kind, content_hash, size, mode, base_seq)
SELECT $1, * FROM unnest($2::bytea[], $3::integer[], $4::text[], $5::bytea[], $6::bigint[], $7::integer[], $8::bigint[])
       AS file (path, position, kind, content_hash, size, mode, base_seq)
ORDER BY content_hash

-- name: newest_snapshot
SELECT * FROM session_snapshots WHERE session_id = $1 ORDER BY created_at DESC, id DESC LIMIT 1

-- name: snapshot_files
SELECT path, position, kind, content_hash, size, mode, base_seq FROM session_snapshot_files
WHERE snapshot_id = $1 ORDER BY path, position

-- name: prune_snapshots
-- All but the $2 newest, the last one of each run, and one that is to be put back.
DELETE FROM session_snapshots s
WHERE s.session_id = $1
  AND NOT EXISTS (SELECT FROM session_rewinds w WHERE w.snapshot_id = s.id)
  AND s.id NOT IN (SELECT id FROM session_snapshots WHERE session_id = $1 ORDER BY created_at DESC, id DESC LIMIT $2)
  AND s.id NOT IN (SELECT DISTINCT ON (run_id) id FROM session_snapshots WHERE session_id = $1 AND run_id IS NOT NULL
                   ORDER BY run_id, created_at DESC)

-- name: snapshot_after
-- As the session was after its run $2 and all before it: the last one of the last of them that began. Nothing, if none
-- was taken then.
SELECT s.* FROM session_snapshots s
WHERE s.session_id = $1
  AND s.run_id = (SELECT id FROM agent_runs
                  WHERE session_id = $1 AND number <= $2 AND started_at IS NOT NULL AND rewound_at IS NULL
                  ORDER BY number DESC LIMIT 1)
ORDER BY s.created_at DESC, s.id DESC LIMIT 1

-- name: last_begun
-- The newest run before number $2 in which an agent worked, of provider $3 or (NULL) of any.
SELECT * FROM agent_runs
WHERE session_id = $1 AND number < $2 AND started_at IS NOT NULL AND rewound_at IS NULL
  AND ($3::text IS NULL OR provider = $3)
ORDER BY number DESC LIMIT 1

-- name: runs_after
-- Those that are not hidden, in order.
SELECT * FROM agent_runs WHERE session_id = $1 AND number > $2 AND rewound_at IS NULL ORDER BY number

-- name: hide_runs
UPDATE agent_runs SET rewound_at = clock_timestamp() WHERE session_id = $1 AND number > $2 AND rewound_at IS NULL

-- name: reset_sdk_sessions
UPDATE agent_sessions SET sdk_session_ids = $2, updated_at = clock_timestamp() WHERE id = $1

-- name: put_rewind
INSERT INTO session_rewinds (session_id, id, snapshot_id, with_files) VALUES ($1, $2, $3, $4)
ON CONFLICT (session_id) DO UPDATE
SET id = excluded.id, snapshot_id = excluded.snapshot_id, created_at = clock_timestamp(),
    with_files = excluded.with_files OR session_rewinds.with_files

-- name: due_rewind
SELECT w.id, w.with_files, s.id AS snapshot_id FROM session_rewinds w
LEFT JOIN session_snapshots s ON s.id = w.snapshot_id WHERE w.session_id = $1

-- name: due_rewinds
-- Of the sessions whose folder machine $1 has.
SELECT w.session_id FROM session_rewinds w JOIN session_workers k ON k.session_id = w.session_id
WHERE k.machine = $1 AND k.state <> 'deleted'

-- name: finish_rewind
DELETE FROM session_rewinds WHERE session_id = $1 AND id = $2

-- name: snapshot_by_id
SELECT * FROM session_snapshots WHERE id = $1

-- name: runs_until
-- Those that are not hidden, in order.
SELECT * FROM agent_runs WHERE session_id = $1 AND number <= $2 AND rewound_at IS NULL ORDER BY number

-- name: copy_runs
-- Runs $2 as runs $3 of session $1.
INSERT INTO agent_runs (id, session_id, number, prompt, provider, model, profile, options, state, state_at, attempt,
                        machine, reason, message, runtime_version, image, cli_version, phases, landed, created_at,
                        started_at, ended_at)
SELECT c.copy, $1, r.number, r.prompt, r.provider, r.model, r.profile, r.options, r.state, r.state_at, r.attempt,
       r.machine, r.reason, r.message, r.runtime_version, r.image, r.cli_version, r.phases, r.landed, r.created_at,
       r.started_at, r.ended_at
FROM unnest($2::uuid[], $3::uuid[]) AS c (original, copy) JOIN agent_runs r ON r.id = c.original

-- name: become_fork
UPDATE agent_sessions SET forked_from = $2, last_run = $3, sdk_session_ids = $4 WHERE id = $1

-- name: copy_snapshot
-- Snapshot $1 as $2, of session $3 and its run $4; made from $5, or (NULL) as it was.
INSERT INTO session_snapshots (id, session_id, run_id, message_id, project_id, epoch, base_seq, reason, files, bytes,
                               sdk_session_ids, verified_at)
SELECT $2, $3, $4, message_id, project_id, epoch, coalesce($5, base_seq), reason, files, bytes, sdk_session_ids, verified_at
FROM session_snapshots WHERE id = $1

-- name: copy_snapshot_files
-- In order of hash, as a purge locks contents: so the two cannot deadlock.
INSERT INTO session_snapshot_files (snapshot_id, path, position, kind, content_hash, size, mode, base_seq)
SELECT $2, path, position, kind, content_hash, size, mode, CASE WHEN base_seq IS NOT NULL THEN coalesce($3, base_seq) END
FROM session_snapshot_files WHERE snapshot_id = $1
ORDER BY content_hash

-- name: forget_snapshots_of_run
UPDATE session_snapshots SET run_id = NULL WHERE run_id = $1

-- name: questions_of_owner
-- Of all sessions of $1, the newest first; of status $2 and project $3, or (NULL) of all; those before question $4.
SELECT q.*, r.answer, r.responder, r.late_run_id, r.created_at AS answered_at
FROM human_loop_requests q
JOIN agent_sessions s ON s.id = q.session_id
LEFT JOIN human_loop_responses r USING (question_id)
WHERE s.owner_id = $1 AND s.state <> 'deleted' AND ($2::text IS NULL OR q.status = $2)
  AND ($3::uuid IS NULL OR s.project_id = $3)
  AND ($4::text IS NULL OR (q.created_at, q.question_id) < (SELECT b.created_at, b.question_id
                                                            FROM human_loop_requests b WHERE b.question_id = $4))
ORDER BY q.created_at DESC, q.question_id DESC
LIMIT $5

-- name: overdue_questions
SELECT question_id, run_id, session_id FROM human_loop_requests WHERE status = 'pending' AND deadline < $1
ORDER BY deadline LIMIT $2

-- name: project_environment
SELECT image, setup FROM project_environments WHERE project_id = $1

-- name: put_project_environment
INSERT INTO project_environments (project_id, image, setup) VALUES ($1, $2, $3)
ON CONFLICT (project_id) DO UPDATE SET image = excluded.image, setup = excluded.setup, updated_at = clock_timestamp()

-- name: insert_attachments
-- In order of hash, as a purge locks contents: so the two cannot deadlock.
INSERT INTO run_attachments (run_id, position, name, media_type, size, content_hash)
SELECT $1, * FROM unnest($2::integer[], $3::text[], $4::text[], $5::bigint[], $6::bytea[])
       AS file (position, name, media_type, size, content_hash)
ORDER BY content_hash

-- name: attachments_of_run
SELECT name, media_type, size, content_hash FROM run_attachments WHERE run_id = $1 ORDER BY position

-- name: share_level
SELECT level FROM session_shares WHERE session_id = $1 AND principal_id = $2

-- name: put_share
INSERT INTO session_shares (session_id, principal_id, level, shared_by, shared_at) VALUES ($1, $2, $3, $4, $5)
ON CONFLICT (session_id, principal_id) DO UPDATE
SET level = excluded.level, shared_by = excluded.shared_by, shared_at = excluded.shared_at

-- name: delete_share
DELETE FROM session_shares WHERE session_id = $1 AND principal_id = $2 RETURNING true

-- name: shares_of_session
SELECT p.name, u.display_name, h.level, h.shared_at
FROM session_shares h JOIN principals p ON p.id = h.principal_id JOIN users u ON u.principal_id = p.id
WHERE h.session_id = $1
ORDER BY p.name

-- name: person_to_share_with
SELECT u.principal_id FROM users u JOIN principals p ON p.id = u.principal_id
WHERE p.kind = 'user' AND p.name = $1 AND u.disabled_at IS NULL AND NOT u.is_service

-- name: sessions_shared_with
-- Newest first, before $2; those of project $3, or (NULL) all.
-- use: sessions_of_owners
JOIN session_shares h ON h.session_id = s.id
WHERE h.principal_id = $1 AND s.state <> 'deleted' AND ($2::uuid IS NULL OR s.id < $2)
  AND ($3::uuid IS NULL OR s.project_id = $3)
ORDER BY s.id DESC
LIMIT $4

-- name: put_asked_by
UPDATE agent_runs SET asked_by = $2 WHERE id = $1

-- name: runs_without_leave
-- Open runs that somebody asked for in a session that they may not drive any more.
SELECT r.id, r.session_id FROM agent_runs r
JOIN run_queue q ON q.run_id = r.id
JOIN users u ON u.principal_id = r.asked_by
WHERE r.asked_by IS NOT NULL AND r.cancel_requested_at IS NULL
  AND (u.disabled_at IS NOT NULL
       OR NOT EXISTS (SELECT FROM session_shares h
                      WHERE h.session_id = r.session_id AND h.principal_id = r.asked_by AND h.level = 'drive'))
ORDER BY r.id
