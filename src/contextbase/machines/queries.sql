-- name: register
-- A machine starts. Whoever had the name before is displaced: its beats find nothing any more.
INSERT INTO machines (id, name, process, address, version, expires_at)
VALUES ($1, $2, $3, $4, $5, clock_timestamp() + make_interval(secs => $6))
ON CONFLICT (name) DO UPDATE
SET process = excluded.process, address = excluded.address, version = excluded.version, expires_at = excluded.expires_at,
    workspace_backend = NULL, sandbox_driver = NULL, started_at = clock_timestamp(), seen_at = clock_timestamp(),
    stopped_at = NULL

-- name: beat
-- Nothing comes back when another process has the name. `others`: machines that could take a workspace as well.
UPDATE machines AS this
SET seen_at = clock_timestamp(), expires_at = clock_timestamp() + make_interval(secs => $3), stopped_at = NULL,
    workspace_backend = $4, sandbox_driver = $5
WHERE name = $1 AND process = $2
RETURNING is_draining, (
    SELECT count(*) FROM machines other
    WHERE other.name <> this.name AND other.address IS NOT NULL AND other.stopped_at IS NULL
      AND other.expires_at > clock_timestamp()
) AS others

-- name: leave
UPDATE machines SET stopped_at = clock_timestamp() WHERE name = $1 AND process = $2

-- name: machine
SELECT m.*, m.expires_at > clock_timestamp() AS is_seen,
       (SELECT count(*) FROM workspaces w WHERE w.node = m.name AND w.state = 'open') AS workspaces
FROM machines m
WHERE m.name = $1

-- name: machines
SELECT m.*, m.expires_at > clock_timestamp() AS is_seen,
       (SELECT count(*) FROM workspaces w WHERE w.node = m.name AND w.state = 'open') AS workspaces
FROM machines m
ORDER BY m.name

-- name: is_alive
SELECT true FROM machines
WHERE name = $1 AND process = $2 AND stopped_at IS NULL AND expires_at > clock_timestamp()

-- name: least_loaded
-- Of those that take new workspaces, and can be reached or are $1 itself: the one with the fewest. One that cannot run
-- commands comes last.
SELECT m.name
FROM machines m
WHERE m.stopped_at IS NULL AND NOT m.is_draining AND m.expires_at > clock_timestamp()
  AND (m.address IS NOT NULL OR m.name = $1)
ORDER BY m.sandbox_driver IS NOT DISTINCT FROM 'unavailable',
         (SELECT count(*) FROM workspaces w WHERE w.node = m.name AND w.state = 'open'), random()
LIMIT 1

-- name: drain
UPDATE machines SET is_draining = $2 WHERE name = $1 AND is_draining <> $2 RETURNING true

-- name: forget
-- Only one that does not run.
DELETE FROM machines WHERE name = $1 AND (stopped_at IS NOT NULL OR expires_at <= clock_timestamp()) RETURNING true

-- name: give_up_workspaces
-- Of a machine that will not come back: their agents can have new ones elsewhere.
UPDATE workspaces SET state = 'lost', ended_at = clock_timestamp(), pending = NULL WHERE node = $1 AND state = 'open'
RETURNING project_id, id

-- name: give_up_sandboxes
UPDATE sandboxes SET removed_at = clock_timestamp() WHERE node = $1 AND removed_at IS NULL
