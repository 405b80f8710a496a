-- Each batch of commits asks whether any of its contents is one that nothing may refer to: being removed, or purged.
-- There are next to none of those, but without an index of their own all blobs were read to see it.
CREATE INDEX blobs_withheld ON blobs (hash) WHERE NOT (live AND purged_at IS NULL);
