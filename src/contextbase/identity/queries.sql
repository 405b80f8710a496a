-- name: insert_principal
-- Make a principal, unless it exists: then nothing happens, also when somebody else is making it this very moment.
INSERT INTO principals (id, kind, name, is_owner) VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING

-- name: principal_by_name
SELECT id, kind, name, is_owner FROM principals WHERE kind = $1 AND name = $2

-- name: insert_token
INSERT INTO tokens (id, principal_id, name, secret_hash, actions, project_id, path_prefix, created_at, expires_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)

-- name: token_by_secret
-- The token a secret belongs to, with its principal; expired and revoked ones too, so that the answer can say so.
SELECT t.id, t.name, t.actions, t.project_id, t.path_prefix, t.created_at, t.expires_at, t.revoked_at,
       p.id AS principal_id, p.kind AS principal_kind, p.name AS principal_name, p.is_owner
FROM tokens t JOIN principals p ON p.id = t.principal_id
WHERE t.secret_hash = $1

-- name: token_page
-- Tokens by age, newest first; all of them, or one principal's.
SELECT t.id, t.name, t.actions, t.project_id, t.path_prefix, t.created_at, t.expires_at, t.revoked_at,
       p.id AS principal_id, p.kind AS principal_kind, p.name AS principal_name, p.is_owner
FROM tokens t JOIN principals p ON p.id = t.principal_id
WHERE ($1::uuid IS NULL OR t.id < $1)
ORDER BY t.id DESC
LIMIT $2

-- name: revoke_token
-- Revoke once; no row when there is no such token, the first time's row when it was revoked before.
WITH revoked AS (
    UPDATE tokens SET revoked_at = $2 WHERE id = $1 AND revoked_at IS NULL RETURNING id, name, true AS now
)
SELECT id, name, now FROM revoked
UNION ALL
SELECT id, name, false FROM tokens WHERE id = $1
LIMIT 1

-- name: project_exists
SELECT EXISTS (SELECT FROM projects WHERE id = $1 AND deleted_at IS NULL)
