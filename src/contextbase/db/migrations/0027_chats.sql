-- Chats: sessions that a chat client has named. A client chooses a chat's id before the server has heard of it.

ALTER TABLE agent_sessions ADD COLUMN chat_id text CHECK (length(chat_id) BETWEEN 1 AND 200);
-- Two messages that are the first of one chat make one session.
CREATE UNIQUE INDEX agent_sessions_one_per_chat ON agent_sessions (owner_id, chat_id) WHERE state <> 'deleted';
