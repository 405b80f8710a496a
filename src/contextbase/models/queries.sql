-- name: upstreams
-- All upstreams, for administrators: the widest scope first.
SELECT upstream.*, project.name AS project, principal.kind || ':' || principal.name AS principal
FROM model_upstreams upstream
LEFT JOIN projects project ON project.id = upstream.project_id
LEFT JOIN principals principal ON principal.id = upstream.principal_id
ORDER BY upstream.scope, upstream.name;

-- name: upstream_for
-- The upstream of a protocol for a user's run in a project: the user's own, the project's, the platform's.
SELECT * FROM model_upstreams
WHERE protocol = $1
  AND (scope = 'platform' OR project_id = $2 OR principal_id = $3)
ORDER BY array_position(ARRAY['user', 'project', 'platform'], scope)
LIMIT 1;

-- name: put_upstream
INSERT INTO model_upstreams
    (id, name, protocol, base_url, sealed_key, scope, project_id, principal_id, may_be_private, created_by)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10);

-- name: delete_upstream
DELETE FROM model_upstreams WHERE name = $1 RETURNING id, project_id;

-- name: allowed_models
SELECT * FROM allowed_models ORDER BY protocol, role, name;

-- name: put_model
INSERT INTO allowed_models
    (name, protocol, role, input_price, output_price, cache_read_price, cache_write_price)
VALUES ($1, $2, $3, $4, $5, $6, $7)
ON CONFLICT (name) DO UPDATE SET
    protocol = EXCLUDED.protocol, role = EXCLUDED.role, input_price = EXCLUDED.input_price,
    output_price = EXCLUDED.output_price, cache_read_price = EXCLUDED.cache_read_price,
    cache_write_price = EXCLUDED.cache_write_price;

-- name: delete_model
DELETE FROM allowed_models WHERE name = $1 RETURNING name;

-- name: budgets
-- Every budget, with what was spent of it this month.
SELECT budget.scope, budget.subject_id, budget.monthly_limit,
       coalesce(project.name, principal.kind || ':' || principal.name) AS subject,
       coalesce(spending.spent, 0) AS spent, coalesce(spending.reserved, 0) AS reserved
FROM model_budgets budget
LEFT JOIN projects project ON budget.scope = 'project' AND project.id = budget.subject_id
LEFT JOIN principals principal ON budget.scope = 'user' AND principal.id = budget.subject_id
LEFT JOIN model_spending spending ON spending.scope = budget.scope AND spending.subject_id = budget.subject_id
    AND spending.month = $1
ORDER BY budget.scope, subject;

-- name: limits
-- What a user and a project may spend in a month.
SELECT scope, monthly_limit FROM model_budgets
WHERE (scope = 'user' AND subject_id = $1) OR (scope = 'project' AND subject_id = $2);

-- name: put_budget
INSERT INTO model_budgets (scope, subject_id, monthly_limit) VALUES ($1, $2, $3)
ON CONFLICT (scope, subject_id) DO UPDATE SET monthly_limit = EXCLUDED.monthly_limit;

-- name: delete_budget
DELETE FROM model_budgets WHERE scope = $1 AND subject_id = $2 RETURNING scope;

-- name: reserve
-- Sets an amount aside if the limit leaves room for it; no row if not.
INSERT INTO model_spending AS spending (scope, subject_id, month, reserved)
SELECT $1, $2, $3, $4 WHERE $4::bigint <= $5::bigint
ON CONFLICT (scope, subject_id, month) DO UPDATE SET reserved = spending.reserved + EXCLUDED.reserved
    WHERE spending.spent + spending.reserved + EXCLUDED.reserved <= $5::bigint
RETURNING spent;

-- name: put_reservation
INSERT INTO model_reservations (id, scopes, subjects, months, amount) VALUES ($1, $2, $3, $4, $5);

-- name: release
-- Gives back what a reservation set aside; no row if that happened before.
WITH gone AS (
    DELETE FROM model_reservations WHERE id = $1 RETURNING scopes, subjects, months, amount
), parts AS (
    SELECT unnest(scopes) AS scope, unnest(subjects) AS subject_id, unnest(months) AS month, amount FROM gone
)
UPDATE model_spending spending SET reserved = greatest(0, spending.reserved - parts.amount)
FROM parts
WHERE spending.scope = parts.scope AND spending.subject_id = parts.subject_id AND spending.month = parts.month;

-- name: stale_reservations
SELECT id FROM model_reservations WHERE created_at < clock_timestamp() - $1::interval ORDER BY created_at LIMIT 1000;

-- name: log_usage
-- No row if this request of the upstream was logged before.
INSERT INTO usage_logs
    (id, upstream, upstream_request_id, session_id, run_id, attempt, owner_id, project_id, model, status,
     input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, is_estimate, cost)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16)
ON CONFLICT DO NOTHING
RETURNING id;

-- name: spend
INSERT INTO model_spending AS spending (scope, subject_id, month, spent)
SELECT scope, subject_id, month, $4::bigint
FROM unnest($1::text[], $2::uuid[], $3::date[]) AS part (scope, subject_id, month)
ON CONFLICT (scope, subject_id, month) DO UPDATE SET spent = spending.spent + EXCLUDED.spent;

-- name: usage_of_runs
SELECT run_id, count(*) AS requests, sum(input_tokens)::bigint AS input, sum(output_tokens)::bigint AS output,
       sum(cache_read_tokens)::bigint AS cache_read, sum(cache_write_tokens)::bigint AS cache_write,
       sum(cost)::bigint AS cost
FROM usage_logs WHERE run_id = ANY ($1::uuid[]) GROUP BY run_id;

-- name: usage_sums
-- The dearest first, days the newest first.
SELECT CASE $1::text
           WHEN 'person' THEN principals.kind || ':' || principals.name
           WHEN 'project' THEN projects.name
           WHEN 'model' THEN usage.model
           ELSE to_char(usage.at AT TIME ZONE 'UTC', 'YYYY-MM-DD')
       END AS subject,
       count(*) AS requests, sum(usage.input_tokens)::bigint AS input, sum(usage.output_tokens)::bigint AS output,
       sum(usage.cache_read_tokens)::bigint AS cache_read, sum(usage.cache_write_tokens)::bigint AS cache_write,
       sum(usage.cost)::bigint AS cost
FROM usage_logs AS usage
JOIN principals ON principals.id = usage.owner_id
JOIN projects ON projects.id = usage.project_id
WHERE usage.at >= $2 AND usage.at < $3
GROUP BY 1
ORDER BY CASE WHEN $1 = 'day' THEN NULL ELSE sum(usage.cost) END DESC NULLS LAST, subject DESC
LIMIT $4;

-- name: egress_hosts
SELECT host FROM egress_hosts WHERE project_id = $1 ORDER BY host;

-- name: replace_egress_hosts
-- All of a project's; those it had are replaced.
WITH gone AS (
    DELETE FROM egress_hosts WHERE project_id = $1 AND NOT host = ANY ($2::text[])
)
INSERT INTO egress_hosts (project_id, host) SELECT $1, unnest($2::text[]) ON CONFLICT DO NOTHING;
