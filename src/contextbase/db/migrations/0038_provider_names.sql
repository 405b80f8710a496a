-- Providers have one stored name each: claude-code and codex-cli. The short forms are still taken where people type them.
UPDATE agent_runs SET provider = CASE provider WHEN 'claude' THEN 'claude-code' ELSE 'codex-cli' END
    WHERE provider IN ('claude', 'codex');
UPDATE agent_sessions SET provider = CASE provider WHEN 'claude' THEN 'claude-code' ELSE 'codex-cli' END
    WHERE provider IN ('claude', 'codex');
UPDATE agent_sessions
    SET sdk_session_ids = jsonb_strip_nulls(
        sdk_session_ids - 'claude' - 'codex'
        || jsonb_build_object('claude-code', sdk_session_ids -> 'claude', 'codex-cli', sdk_session_ids -> 'codex')
    )
    WHERE sdk_session_ids ?| ARRAY['claude', 'codex'];
