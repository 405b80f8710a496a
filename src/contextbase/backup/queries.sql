-- name: tables
-- Every table, with the columns that are stored and not computed. Which migrations were applied is in the manifest; the
-- index for search is made again from the contents.
SELECT c.relname AS name, array_agg(a.attname::text ORDER BY a.attnum) AS columns
FROM pg_class c
JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = ''
WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind = 'r' AND c.relname <> 'schema_migrations'
  AND c.relname NOT LIKE 'search\_%'
GROUP BY c.oid, c.relname
ORDER BY c.relname

-- name: references
-- Which table's rows must be there before which other's. What is checked at the end of a transaction binds nobody, and
-- a table's references to itself are checked at the end of a statement.
SELECT DISTINCT c.relname AS name, target.relname AS refers_to
FROM pg_constraint k
JOIN pg_class c ON c.oid = k.conrelid
JOIN pg_class target ON target.oid = k.confrelid
WHERE k.contype = 'f' AND NOT k.condeferred AND k.conrelid <> k.confrelid AND c.relname NOT LIKE 'search\_%'
  AND c.relnamespace = current_schema()::regnamespace

-- name: applied_migrations
SELECT version, name, checksum FROM schema_migrations ORDER BY version

-- name: migrated_to
-- 0: never.
SELECT coalesce(max(version), 0) FROM schema_migrations

-- name: has_schema
SELECT to_regclass('schema_migrations') IS NOT NULL

-- name: is_used
-- Every other table refers, directly or not, to one of these, or is written along with one that does.
SELECT EXISTS (SELECT FROM principals) OR EXISTS (SELECT FROM blobs) OR EXISTS (SELECT FROM blob_contents)
    OR EXISTS (SELECT FROM audit_heads) OR EXISTS (SELECT FROM groups)

-- name: projects
SELECT id, name, head, epoch, deleted_at IS NOT NULL AS deleted FROM projects ORDER BY id

-- name: anchors
SELECT chain, number, encode(mac, 'hex') AS mac FROM audit_heads ORDER BY chain

-- name: stored_blobs
-- The blobs whose bytes are in the blob store.
SELECT b.hash, b.size FROM blobs b
WHERE b.live AND b.purged_at IS NULL AND NOT EXISTS (SELECT FROM blob_contents c WHERE c.hash = b.hash)
ORDER BY b.hash

-- name: cancel_statement
SELECT pg_cancel_backend($1)

-- name: check_deferred
-- What would be checked at the end of the transaction: while it waits, no migration could change those tables.
SET CONSTRAINTS ALL IMMEDIATE

-- name: renew_epochs
-- Bases, cursors and mirrors from before are of a history that may have gone on differently.
WITH streams AS (UPDATE stream_heads SET epoch = gen_random_uuid() WHERE scope_kind <> 'project')
UPDATE projects SET epoch = gen_random_uuid()

-- name: void_claims
-- Who had claimed an open review item does not know of this copy.
UPDATE review_items SET claimed_by = NULL, claimed_at = NULL WHERE state = 'open' AND claimed_by IS NOT NULL

-- name: void_leader
-- Its lease was of the servers of another database.
DELETE FROM chore_leader

-- name: void_leases
-- Who held them does not know of this copy. Tokens go on from the clock: see leases/table.py.
DELETE FROM leases

-- name: void_workspaces
-- Their folders, if they are anywhere, belong to the history that went on without this copy.
UPDATE workspaces SET state = 'lost', ended_at = clock_timestamp(), pending = NULL WHERE state = 'open'
