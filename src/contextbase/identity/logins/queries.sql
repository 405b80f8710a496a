-- name: person_to_log_in
-- By login name, whatever its case; the owner too. Without a password the hash is NULL.
SELECT u.principal_id, p.kind AS principal_kind, p.name AS principal_name, p.is_owner AS principal_is_owner,
       w.hash, u.is_service OR u.disabled_at IS NOT NULL AS is_barred
FROM users u JOIN principals p ON p.id = u.principal_id LEFT JOIN passwords w ON w.principal_id = u.principal_id
WHERE lower(u.login_name) = lower($1)

-- name: password_of
SELECT hash FROM passwords WHERE principal_id = $1

-- name: put_password
INSERT INTO passwords (principal_id, hash, changed_at) VALUES ($1, $2, $3)
ON CONFLICT (principal_id) DO UPDATE SET hash = excluded.hash, changed_at = excluded.changed_at

-- name: replace_hash
-- The same password with other costs, unless it was changed meanwhile.
UPDATE passwords SET hash = $3 WHERE principal_id = $1 AND hash = $2

-- name: delete_password
DELETE FROM passwords WHERE principal_id = $1

-- name: lock_attempts
-- Attempts with the same keys are counted one after the other. Keys come sorted, so that nobody waits for each other.
SELECT pg_advisory_xact_lock(hashtextextended(encode(key, 'hex'), 0)) FROM unnest($1::bytea[]) AS key

-- name: count_attempt
-- Counts an attempt before it is made, so that many at once do not get past the limit. A count of long ago starts anew.
INSERT INTO login_failures AS f (key, failures, failed_at) VALUES ($1, 1, $2)
ON CONFLICT (key) DO UPDATE SET
    failures = CASE WHEN f.failed_at < $2 - make_interval(secs => $3) THEN 1 ELSE f.failures + 1 END, failed_at = $2

-- name: failures_of
SELECT key, failures, failed_at FROM login_failures WHERE key = ANY ($1::bytea[])

-- name: forgive
DELETE FROM login_failures WHERE key = $1

-- name: take_back_attempt
UPDATE login_failures SET failures = greatest(failures - 1, 1) WHERE key = $1

-- name: prune_failures
DELETE FROM login_failures WHERE failed_at < $1

-- name: insert_login
INSERT INTO browser_logins (id, principal_id, token_id, secret_hash, rotated_at, created_at, expires_at)
VALUES ($1, $2, $3, $4, $5, $5, $6)

-- name: login_by_secret
SELECT l.id, l.token_id, l.rotated_at, l.expires_at, l.ended_at IS NOT NULL AS is_ended, l.secret_hash <> $1 AS is_previous,
       p.id AS principal_id, p.kind AS principal_kind, p.name AS principal_name, p.is_owner AS principal_is_owner
FROM browser_logins l JOIN principals p ON p.id = l.principal_id
WHERE l.secret_hash = $1 OR l.previous_hash = $1

-- name: login_by_id
SELECT l.id, l.token_id, l.rotated_at, l.expires_at, l.ended_at IS NOT NULL AS is_ended, false AS is_previous,
       p.id AS principal_id, p.kind AS principal_kind, p.name AS principal_name, p.is_owner AS principal_is_owner
FROM browser_logins l JOIN principals p ON p.id = l.principal_id
WHERE l.id = $1

-- name: rotate_login
-- Once: of two requests at the same time one gets the new secret.
UPDATE browser_logins SET previous_hash = secret_hash, secret_hash = $3, rotated_at = $4
WHERE id = $1 AND secret_hash = $2 AND ended_at IS NULL RETURNING true

-- name: end_login
UPDATE browser_logins SET ended_at = $2 WHERE (secret_hash = $1 OR previous_hash = $1) AND ended_at IS NULL
RETURNING principal_id

-- name: end_logins_of
-- All of somebody's, but one ($3; NULL: none).
UPDATE browser_logins SET ended_at = $2 WHERE principal_id = $1 AND ended_at IS NULL AND id IS DISTINCT FROM $3
RETURNING id

-- name: prune_logins
DELETE FROM browser_logins WHERE expires_at < $1 OR ended_at < $1

-- name: use_links_of
UPDATE password_links SET used_at = $2 WHERE principal_id = $1 AND used_at IS NULL

-- name: insert_link
INSERT INTO password_links (secret_hash, principal_id, made_by, expires_at) VALUES ($1, $2, $3, $4)

-- name: use_link
UPDATE password_links l SET used_at = $2
FROM users u JOIN principals p ON p.id = u.principal_id
WHERE l.secret_hash = $1 AND l.used_at IS NULL AND l.expires_at > $2 AND u.principal_id = l.principal_id
  AND u.disabled_at IS NULL AND NOT u.is_service
RETURNING p.id AS principal_id, p.kind AS principal_kind, p.name AS principal_name, p.is_owner AS principal_is_owner

-- name: insert_openid_attempt
-- Nothing comes back when too many ($8) are under way: anybody may begin one.
INSERT INTO openid_attempts (state_hash, browser_hash, nonce, verifier, redirect_uri, return_to, expires_at)
SELECT $1, $2, $3, $4, $5, $6, $7 WHERE (SELECT count(*) FROM openid_attempts) < $8
RETURNING true

-- name: take_openid_attempt
-- Once, and only for the browser that was sent off.
DELETE FROM openid_attempts WHERE state_hash = $1 AND browser_hash = $2 AND expires_at > $3
RETURNING nonce, verifier, redirect_uri, return_to

-- name: prune_openid_attempts
DELETE FROM openid_attempts WHERE expires_at < $1

-- name: person_by_identity
SELECT p.id AS principal_id, p.kind AS principal_kind, p.name AS principal_name, p.is_owner AS principal_is_owner,
       u.is_service OR u.disabled_at IS NOT NULL AS is_barred
FROM openid_identities i JOIN users u ON u.principal_id = i.principal_id JOIN principals p ON p.id = u.principal_id
WHERE i.issuer = $1 AND i.subject = $2

-- name: person_to_link
-- By an e-mail address that the provider has verified. Not the owner, and nobody who is linked at that provider already.
SELECT p.id AS principal_id, p.kind AS principal_kind, p.name AS principal_name, p.is_owner AS principal_is_owner
FROM users u JOIN principals p ON p.id = u.principal_id
WHERE lower(u.email) = lower($2) AND NOT u.is_service AND u.disabled_at IS NULL AND NOT p.is_owner
  AND NOT EXISTS (SELECT FROM openid_identities i WHERE i.issuer = $1 AND i.principal_id = u.principal_id)
FOR UPDATE OF u

-- name: delete_identities_of
DELETE FROM openid_identities WHERE principal_id = $1

-- name: identities_of
SELECT issuer, subject, linked_at FROM openid_identities WHERE principal_id = $1 ORDER BY issuer

-- name: delete_identity
DELETE FROM openid_identities WHERE principal_id = $1 AND issuer = $2

-- name: insert_identity
INSERT INTO openid_identities (issuer, subject, principal_id, linked_at) VALUES ($1, $2, $3, $4)

-- name: name_is_taken
-- By an account or by a principal that has tokens: a new person never becomes somebody who is there already.
SELECT EXISTS (SELECT FROM principals WHERE name = $1) OR EXISTS (SELECT FROM users WHERE lower(login_name) = lower($2))

-- name: email_is_taken
SELECT EXISTS (SELECT FROM users WHERE lower(email) = lower($1))
