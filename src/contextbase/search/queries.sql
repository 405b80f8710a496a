-- name: projects_behind
-- Projects with commits that were not looked into yet, those first that have waited longest.
SELECT p.id, p.head, coalesce(s.seq, 0) AS seq, c.committed_at AS waiting_since
FROM projects p
LEFT JOIN search_progress s ON s.project_id = p.id
JOIN LATERAL (
    SELECT committed_at FROM commits c WHERE c.project_id = p.id AND c.seq = coalesce(s.seq, 0) + 1 LIMIT 1
) c ON true
WHERE p.deleted_at IS NULL AND p.head > coalesce(s.seq, 0)
ORDER BY s.stepped_at NULLS FIRST
LIMIT $1

-- name: blobs_to_index
-- The contents of files that came in commits ($2, $3] and have no number, in order of their commits.
SELECT v.content_hash, v.size, min(v.seq) AS seq
FROM versions v
JOIN blobs b ON b.hash = v.content_hash AND b.purged_at IS NULL
WHERE v.project_id = $1 AND v.seq > $2 AND v.seq <= $3 AND v.kind = 'file'
  AND NOT EXISTS (SELECT FROM search_blobs s WHERE s.hash = v.content_hash)
GROUP BY v.content_hash, v.size
ORDER BY min(v.seq), v.content_hash
LIMIT $4

-- name: next_segment
SELECT coalesce(max(number), 0) + 1 AS number, coalesce(max(last), 0) + 1 AS first FROM search_segments

-- name: insert_segment
INSERT INTO search_segments (number, first, last) VALUES ($1, $2, $3)

-- name: insert_blobs
-- In order of hash, as a purge locks contents: so the two cannot deadlock.
INSERT INTO search_blobs (id, hash, left_out)
SELECT * FROM unnest($1::integer[], $2::bytea[], $3::text[]) AS blob (id, hash, left_out)
ORDER BY hash

-- name: advance
INSERT INTO search_progress (project_id, seq) VALUES ($1, $2)
ON CONFLICT (project_id) DO UPDATE SET seq = greatest(search_progress.seq, excluded.seq), stepped_at = clock_timestamp()

-- name: segments
SELECT number, first, last FROM search_segments ORDER BY first

-- name: lock_index
-- One at a time writes to the index.
SELECT pg_advisory_xact_lock(1667391079, 3)

-- name: merge_postings
-- The lists of segments $2, put together for grams in [$3, $4). Numbers rise from segment to segment.
INSERT INTO search_postings (segment, gram, ids)
SELECT $1, p.gram, string_agg(p.ids, '' ORDER BY s.first)
FROM search_postings p JOIN search_segments s ON s.number = p.segment
WHERE p.segment = ANY ($2::integer[]) AND p.gram >= $3 AND p.gram < $4
GROUP BY p.gram

-- name: delete_segment
WITH postings AS (DELETE FROM search_postings WHERE segment = $1)
DELETE FROM search_segments WHERE number = $1

-- name: gone_blobs
-- Numbers of blobs that are gone, with the segments that may list them.
SELECT b.id, s.number, s.first, s.last
FROM search_blobs b JOIN search_segments s ON b.id BETWEEN s.first AND s.last
WHERE b.hash IS NULL
ORDER BY b.id
LIMIT $1

-- name: posting_page
SELECT gram, ids FROM search_postings WHERE segment = $1 AND gram > $2 ORDER BY gram LIMIT $3

-- name: replace_postings
UPDATE search_postings p SET ids = n.ids
FROM unnest($2::integer[], $3::bytea[]) AS n (gram, ids)
WHERE p.segment = $1 AND p.gram = n.gram

-- name: delete_postings
DELETE FROM search_postings WHERE segment = $1 AND gram = ANY ($2::integer[])

-- name: delete_blobs
DELETE FROM search_blobs WHERE id = ANY ($1::integer[]) AND hash IS NULL

-- name: index_state
-- The last blob that is in a segment, and up to which of a project's commits all are. What is read of the index later
-- knows these, and perhaps more.
SELECT coalesce((SELECT max(last) FROM search_segments), 0) AS last_blob,
       coalesce((SELECT seq FROM search_progress WHERE project_id = $1), 0) AS seq

-- name: gram_weights
-- How long the lists of these grams are. (Here and below each list, and each blob's files, are looked up by themselves: a
-- plan made before the tables were analyzed would read the whole index, or the whole project.)
SELECT g.gram, sum(p.length)::bigint AS weight
FROM search_segments s
CROSS JOIN unnest($1::integer[]) AS g (gram)
CROSS JOIN LATERAL (
    SELECT octet_length(ids) AS length FROM search_postings p WHERE p.segment = s.number AND p.gram = g.gram LIMIT 1
) p
GROUP BY g.gram

-- name: postings
SELECT s.number, s.first, s.last, g.gram, p.ids
FROM search_segments s
CROSS JOIN unnest($1::integer[]) AS g (gram)
CROSS JOIN LATERAL (SELECT ids FROM search_postings p WHERE p.segment = s.number AND p.gram = g.gram LIMIT 1) p
ORDER BY s.number

-- name: files_of_blobs
-- In snapshot $2, in path order, in the range [$3, $4) and after $5: files whose content is one of the blobs $6, or cannot
-- be searched; and those of commits after $7 whose content was not among the first $8 blobs, all that there were when the
-- index was asked.
SELECT node_id, path, content_hash, size, NULL::integer AS blob, NULL AS left_out FROM (
    SELECT v.node_id, v.path, v.content_hash, v.size
    FROM (
        SELECT hash FROM search_blobs WHERE id = ANY ($6::integer[])
        UNION ALL
        SELECT hash FROM search_blobs WHERE left_out <> 'binary' AND id <= $8
    ) b
    CROSS JOIN LATERAL (SELECT * FROM versions v WHERE v.content_hash = b.hash OFFSET 0) v
    WHERE v.project_id = $1
      AND v.seq <= $2 AND (v.replaced_seq IS NULL OR v.replaced_seq > $2) AND v.kind = 'file'
      AND v.path >= $3 AND v.path < $4 AND v.path > $5
    UNION ALL
    SELECT v.node_id, v.path, v.content_hash, v.size
    FROM versions v LEFT JOIN search_blobs b ON b.hash = v.content_hash
    WHERE v.project_id = $1 AND v.seq > $7
      AND v.seq <= $2 AND (v.replaced_seq IS NULL OR v.replaced_seq > $2) AND v.kind = 'file'
      AND v.path >= $3 AND v.path < $4 AND v.path > $5
      AND (b.id IS NULL OR b.id > $8)
) files
ORDER BY path
LIMIT $9

-- name: files_page
-- All files of snapshot $2 likewise, each with the number of its content, if it has one.
SELECT v.node_id, v.path, v.content_hash, v.size, b.id AS blob, b.left_out
FROM versions v LEFT JOIN search_blobs b ON b.hash = v.content_hash
WHERE v.project_id = $1 AND v.seq <= $2 AND (v.replaced_seq IS NULL OR v.replaced_seq > $2) AND v.kind = 'file'
  AND v.path >= $3 AND v.path < $4 AND v.path > $5
ORDER BY v.path
LIMIT $6

-- name: paths_page
-- The paths of files and links in snapshot $2, with the node of each.
SELECT v.node_id, v.path
FROM versions v
WHERE v.project_id = $1 AND v.seq <= $2 AND (v.replaced_seq IS NULL OR v.replaced_seq > $2)
  AND v.kind IN ('file', 'symlink') AND v.path >= $3 AND v.path < $4 AND v.path > $5
ORDER BY v.path
LIMIT $6
