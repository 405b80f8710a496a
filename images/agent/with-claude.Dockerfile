# An agent's image with Claude Code in it, for sessions whose files are in a container (`workspace_kind: container`):
#   docker build -t contextbase-agent:latest images/agent
#   docker build -t contextbase-agent-claude:latest -f images/agent/with-claude.Dockerfile images/agent
# /opt/agents has one folder for each agent program: claude, codex, opencode.
FROM contextbase-agent:latest
USER root
RUN apt-get update \
 && apt-get install -y --no-install-recommends python3-pip \
 && pip install --break-system-packages --no-cache-dir --no-deps --target /opt/agents/claude claude-agent-sdk==0.2.182 \
 && apt-get purge -y python3-pip && apt-get autoremove -y && rm -rf /var/lib/apt/lists/*
# The others are installed by npm, where a newer Node than Debian's is at hand:
#   npm install --prefix /opt/agents/codex @openai/codex@0.166.0
#   npm install --prefix /opt/agents/opencode opencode-ai@1.18.33
USER agent
