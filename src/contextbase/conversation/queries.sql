-- name: messages_to_change
-- Of runs $1, those that are named, and those that an end of the attempt would change.
SELECT * FROM agent_messages WHERE run_id = ANY ($1::uuid[]) AND (state = 'streaming' OR message_id = ANY ($2::text[]))

-- name: tools_to_change
SELECT * FROM tool_executions WHERE run_id = ANY ($1::uuid[]) AND (status = 'running' OR tool_id = ANY ($2::text[]))

-- name: put_messages
INSERT INTO agent_messages
    (session_id, run_id, attempt, message_id, position, role, state, parts, created_at, updated_at)
SELECT * FROM unnest($1::uuid[], $2::uuid[], $3::integer[], $4::text[], $5::bigint[], $6::text[], $7::text[],
                     $8::jsonb[], $9::timestamptz[], $10::timestamptz[])
ON CONFLICT (run_id, attempt, message_id) DO UPDATE
SET role = excluded.role, state = excluded.state, parts = excluded.parts, updated_at = excluded.updated_at

-- name: put_tools
INSERT INTO tool_executions
    (session_id, run_id, attempt, tool_id, position, name, title, input, status, output, truncated, started_at, ended_at)
SELECT * FROM unnest($1::uuid[], $2::uuid[], $3::integer[], $4::text[], $5::bigint[], $6::text[], $7::text[],
                     $8::jsonb[], $9::text[], $10::jsonb[], $11::boolean[], $12::timestamptz[], $13::timestamptz[])
ON CONFLICT (run_id, attempt, tool_id) DO UPDATE
SET status = excluded.status, output = excluded.output, truncated = excluded.truncated, ended_at = excluded.ended_at

-- name: message_page
-- In order, after a position; of run $3, or (NULL) of all.
SELECT * FROM agent_messages
WHERE session_id = $1 AND position > $2 AND ($3::uuid IS NULL OR run_id = $3)
ORDER BY position LIMIT $4

-- name: newest_messages
-- The newest before a position, the newest first.
SELECT * FROM agent_messages WHERE session_id = $1 AND position < $2 ORDER BY position DESC LIMIT $3

-- name: tool_page
SELECT * FROM tool_executions WHERE session_id = $1 AND run_id = $2 AND position > $3 ORDER BY position LIMIT $4

-- name: known_events
SELECT run_id, attempt, n FROM run_event_ids
JOIN unnest($1::uuid[], $2::integer[], $3::bigint[]) AS asked (run_id, attempt, n) USING (run_id, attempt, n)

-- name: insert_event_ids
INSERT INTO run_event_ids (run_id, attempt, session_id, n, number, ts)
SELECT * FROM unnest($1::uuid[], $2::integer[], $3::uuid[], $4::bigint[], $5::bigint[], $6::timestamptz[])

-- name: last_event
-- The newest of an attempt's events; NULL: none came.
SELECT max(n) FROM run_event_ids WHERE run_id = $1 AND attempt = $2

-- name: message_by_name
SELECT * FROM agent_messages WHERE session_id = $1 AND message_id = $2 ORDER BY position DESC LIMIT 1

-- name: last_position
SELECT max(position) FROM (SELECT position FROM agent_messages WHERE run_id = $1
                           UNION ALL SELECT position FROM tool_executions WHERE run_id = $1) AS shown

-- name: messages_of_runs
-- Of the runs that began, between numbers $2 and $3; the newest first.
SELECT m.* FROM agent_messages m JOIN agent_runs r ON r.id = m.run_id
WHERE m.session_id = $1 AND r.number > $2 AND r.number < $3 AND r.started_at IS NOT NULL
ORDER BY r.number DESC, m.position DESC LIMIT $4

-- name: tools_of_runs
SELECT t.* FROM tool_executions t JOIN agent_runs r ON r.id = t.run_id
WHERE t.session_id = $1 AND r.number > $2 AND r.number < $3 AND r.started_at IS NOT NULL
ORDER BY r.number DESC, t.position DESC LIMIT $4

-- name: hide_messages
-- Those of runs $2, and those of run $3 after position $4, unless that is NULL.
DELETE FROM agent_messages WHERE session_id = $1 AND (run_id = ANY ($2::uuid[]) OR (run_id = $3 AND position > $4))

-- name: hide_tools
DELETE FROM tool_executions WHERE session_id = $1 AND (run_id = ANY ($2::uuid[]) OR (run_id = $3 AND position > $4))

-- name: hide_questions
-- Their answers go with them.
DELETE FROM human_loop_requests WHERE session_id = $1 AND (run_id = ANY ($2::uuid[]) OR (run_id = $3 AND position > $4))

-- name: hide_todo_events
DELETE FROM todo_item_events WHERE session_id = $1 AND (run_id = ANY ($2::uuid[]) OR (run_id = $3 AND position > $4))

-- name: newest_tools
SELECT * FROM tool_executions WHERE session_id = $1 ORDER BY position DESC LIMIT $2

-- name: questions_by_id
SELECT q.*, r.answer, r.responder, r.late_run_id, r.created_at AS answered_at
FROM human_loop_requests q LEFT JOIN human_loop_responses r USING (question_id)
WHERE q.question_id = ANY ($1::text[])

-- name: put_questions
INSERT INTO human_loop_requests
    (session_id, question_id, run_id, attempt, position, kind, prompt, options, multiple, context, status, deadline,
     created_at, resolved_at, delivered_at)
SELECT $1, * FROM unnest($2::text[], $3::uuid[], $4::integer[], $5::bigint[], $6::text[], $7::text[], $8::jsonb[],
                         $9::boolean[], $10::jsonb[], $11::text[], $12::timestamptz[], $13::timestamptz[],
                         $14::timestamptz[], $15::timestamptz[])
ON CONFLICT (question_id) DO UPDATE
SET status = excluded.status, resolved_at = excluded.resolved_at, delivered_at = excluded.delivered_at

-- name: put_responses
INSERT INTO human_loop_responses (session_id, question_id, run_id, answer, responder, late_run_id, created_at)
SELECT $1, * FROM unnest($2::text[], $3::uuid[], $4::jsonb[], $5::text[], $6::uuid[], $7::timestamptz[])
ON CONFLICT (question_id) DO NOTHING

-- name: questions_of_run
SELECT q.*, r.answer, r.responder, r.late_run_id, r.created_at AS answered_at
FROM human_loop_requests q LEFT JOIN human_loop_responses r USING (question_id)
WHERE q.run_id = $1
ORDER BY q.position, q.question_id
LIMIT $2

-- name: pending_questions_of_run
SELECT question_id FROM human_loop_requests WHERE run_id = $1 AND status = 'pending' ORDER BY position, question_id

-- name: session_permissions
-- Tools that a person has allowed for the whole session.
SELECT DISTINCT q.context ->> 'tool' AS tool
FROM human_loop_requests q JOIN human_loop_responses r USING (question_id)
WHERE q.session_id = $1 AND q.kind = 'permission' AND r.answer ->> 'decision' = 'allow_session'
  AND q.context ->> 'tool' IS NOT NULL

-- name: todos_of_runs
SELECT * FROM todo_items WHERE run_id = ANY ($1::uuid[]) ORDER BY run_id, item_order, first_seen, todo_id

-- name: todos_of_session
-- Of the last run that had a list.
SELECT * FROM todo_items
WHERE run_id = (SELECT run_id FROM todo_items WHERE session_id = $1 ORDER BY first_seen DESC LIMIT 1)
ORDER BY item_order, first_seen, todo_id

-- name: remove_todos
DELETE FROM todo_items t USING unnest($1::uuid[], $2::text[]) AS gone (run_id, todo_id)
WHERE t.run_id = gone.run_id AND t.todo_id = gone.todo_id

-- name: put_todos
INSERT INTO todo_items (session_id, run_id, todo_id, content, status, item_order, first_seen, created_at, updated_at)
SELECT $1, * FROM unnest($2::uuid[], $3::text[], $4::text[], $5::text[], $6::bigint[], $7::bigint[],
                         $8::timestamptz[], $9::timestamptz[])
ON CONFLICT (run_id, todo_id) DO UPDATE
SET content = excluded.content, status = excluded.status, item_order = excluded.item_order,
    first_seen = excluded.first_seen, created_at = excluded.created_at, updated_at = excluded.updated_at

-- name: put_todo_events
-- One event of the session changes an item once at most, however often it is applied.
INSERT INTO todo_item_events (session_id, run_id, todo_id, position, change, content, status, item_order, ts)
SELECT $1, * FROM unnest($2::uuid[], $3::text[], $4::bigint[], $5::text[], $6::text[], $7::text[], $8::bigint[],
                         $9::timestamptz[])
ON CONFLICT DO NOTHING

-- name: todo_events_of_runs
SELECT * FROM todo_item_events WHERE run_id = ANY ($1::uuid[]) ORDER BY position, item_order, todo_id

-- name: todo_history
-- The changes of the next $3 events after position $2.
SELECT * FROM todo_item_events
WHERE run_id = $1 AND position IN (SELECT DISTINCT position FROM todo_item_events
                                   WHERE run_id = $1 AND position > $2 ORDER BY position LIMIT $3)
ORDER BY position, item_order, todo_id

-- name: fold_deltas
-- Pieces of texts of run $2, in session $1, that are there as a whole, too.
DELETE FROM stream_events d
USING run_event_ids i
WHERE i.run_id = $2 AND d.scope_kind = 'session' AND d.scope_id = $1 AND d.number = i.number
  AND d.kind IN ('message.delta', 'reasoning.delta')
  AND EXISTS (
      SELECT FROM run_event_ids o
      JOIN stream_events e ON e.scope_kind = 'session' AND e.scope_id = $1 AND e.number = o.number
      WHERE o.run_id = $2 AND o.attempt = i.attempt AND e.number > d.number
        AND e.kind = replace(d.kind, '.delta', '.done')
        AND e.payload ->> 'message_id' = d.payload ->> 'message_id' AND e.payload ->> 'part' = d.payload ->> 'part')
