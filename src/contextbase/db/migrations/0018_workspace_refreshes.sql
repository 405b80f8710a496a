-- Others' changes come into an open workspace: the snapshot it was last brought up to, and what is being brought into it
-- just now, which is finished by the next call after a crash. A path that could not be brought up keeps a row in
-- `workspace_paths` with the base that it has.
ALTER TABLE workspaces
    ADD COLUMN refreshed_seq bigint CHECK (refreshed_seq >= base_seq),  -- NULL: never, it shows its base
    ADD COLUMN refresh text CHECK (refresh IS NULL OR (state = 'open' AND pending IS NULL));
