-- name: ensure_chain
-- Start a chain if it does not exist yet.
INSERT INTO audit_heads (chain) VALUES ($1) ON CONFLICT (chain) DO NOTHING

-- name: lock_head
-- The end of a chain, held to the end of the transaction: appends to one chain are one after the other.
SELECT number, mac, seal FROM audit_heads WHERE chain = $1 FOR UPDATE

-- name: append
-- Add linked rows to a chain ($20) and say where it ends now; none of it unless it ended at $24 with the mac $25.
WITH extended AS (
    UPDATE audit_heads SET number = $21, mac = $22, seal = $23
    WHERE chain = $20 AND number = $24 AND mac = $25
    RETURNING true
)
INSERT INTO audit (chain, number, at, operator_type, principal_id, token_id, action, path, node_id, base_seq, seq,
                   old_hash, new_hash, strategy, summary, origin, trace_id, details, mac)
SELECT linked.*
FROM unnest($1::uuid[], $2::bigint[], $3::timestamptz[], $4::text[], $5::uuid[], $6::uuid[], $7::text[],
            $8::text[], $9::uuid[], $10::bigint[], $11::bigint[], $12::bytea[], $13::bytea[], $14::text[], $15::text[],
            $16::text[], $17::text[], $18::text[], $19::bytea[]) AS linked, extended

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
