-- name: ensure_chain
-- Start a chain if it does not exist yet.
INSERT INTO audit_heads (chain) VALUES ($1) ON CONFLICT (chain) DO NOTHING

-- name: lock_head
-- The end of a chain, held to the end of the transaction: appends to one chain are one after the other.
SELECT number, mac, seal FROM audit_heads WHERE chain = $1 FOR UPDATE

-- name: end
-- Where a chain ends now.
SELECT number, mac FROM audit_heads WHERE chain = $1

-- name: append
-- Add linked rows to a chain ($1) and say where it ends now ($4 to $6); none of it unless it ended at $2 with the mac $3.
WITH extended AS (
    UPDATE audit_heads SET number = $4, mac = $5, seal = $6
    WHERE chain = $1 AND number = $2 AND mac = $3
    RETURNING chain
)
INSERT INTO audit (chain, number, at, operator_type, principal_id, token_id, action, path, node_id, base_seq, seq,
                   old_hash, new_hash, strategy, summary, origin, trace_id, details, mac)
SELECT extended.chain, linked.*
FROM extended, unnest($7::bigint[], $8::timestamptz[], $9::text[], $10::uuid[], $11::uuid[], $12::text[], $13::text[],
                      $14::uuid[], $15::bigint[], $16::bigint[], $17::bytea[], $18::bytea[], $19::text[], $20::text[],
                      $21::text[], $22::text[], $23::text[], $24::bytea[]) AS linked

-- name: heads
-- Every chain and where it says it ends.
SELECT chain, number, mac, seal FROM audit_heads ORDER BY chain

-- name: headless
-- Chains whose head somebody removed, foreign key or not.
SELECT DISTINCT chain FROM audit WHERE NOT EXISTS (SELECT FROM audit_heads h WHERE h.chain = audit.chain)

-- name: page
-- A chain's rows after a number, in order.
SELECT chain, number, at, operator_type, principal_id, token_id, action, path, node_id, base_seq, seq, old_hash,
       new_hash, strategy, summary, origin, trace_id, details, mac
FROM audit
WHERE chain = $1 AND number > $2
ORDER BY number
LIMIT $3

-- name: begun
-- Whether anything was audited yet.
SELECT EXISTS (SELECT FROM audit_heads)
