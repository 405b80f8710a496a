"""Sessions with agents: what every server can do for them, whichever machine works."""

from dataclasses import dataclass
from datetime import timedelta

from contextbase.bootstrap.catalog import CatalogServices
from contextbase.bootstrap.foundation import Foundation
from contextbase.catalog.app_session_repository import AppSessionRepository
from contextbase.catalog.repository import AppRepository
from contextbase.conversation.log import ConversationLog
from contextbase.gate.service import Gate
from contextbase.identity.repository import IdentityRepository
from contextbase.sessions.access import SessionAccess
from contextbase.sessions.agent_catalog import AgentCatalog
from contextbase.sessions.agent_programs import AgentPrograms
from contextbase.sessions.agent_runs import AgentRuns
from contextbase.sessions.app_forks import AppForks
from contextbase.sessions.app_sessions import AppSessions
from contextbase.sessions.app_settings import AppRunSettings
from contextbase.sessions.attachments import RunAttachments
from contextbase.sessions.chats import Chats
from contextbase.sessions.environments import ProjectEnvironments
from contextbase.sessions.fork import SessionForks
from contextbase.sessions.lifecycle import SessionLifecycle
from contextbase.sessions.narrowing import SessionNarrowing
from contextbase.sessions.questions import QuestionService
from contextbase.sessions.queue import QueueLimits, RunQueue
from contextbase.sessions.repository import SessionRepository
from contextbase.sessions.run_log import RunLog
from contextbase.sessions.service import SessionService
from contextbase.sessions.share_repository import ShareRepository
from contextbase.sessions.shares import SessionSharing
from contextbase.sessions.snapshot_archive import SnapshotArchives
from contextbase.sessions.snapshot_repository import SnapshotRepository
from contextbase.sessions.steering import SteeredMessages
from contextbase.sessions.todos import TodoService
from contextbase.streams.service import StreamService

__all__ = ["SessionServices", "session_access", "sessions_of"]


@dataclass(frozen=True, kw_only=True, slots=True)
class SessionServices:
    service: SessionService
    narrowing: SessionNarrowing
    shares: SessionSharing
    chats: Chats
    apps: AppSessions
    settings: AppRunSettings
    runs: AgentRuns
    queue: RunQueue
    log: RunLog
    questions: QuestionService
    todos: TodoService
    lifecycle: SessionLifecycle
    agents: AgentCatalog
    snapshots: SnapshotArchives
    environments: ProjectEnvironments
    forks: SessionForks
    attachments: RunAttachments


def session_access(foundation: Foundation) -> SessionAccess:
    return SessionAccess(
        database=foundation.database,
        repository=SessionRepository(),
        audit=foundation.audit,
        clock=foundation.clock,
    )


def sessions_of(
    foundation: Foundation, access: SessionAccess, streams: StreamService, catalog: CatalogServices, gate: Gate
) -> SessionServices:
    database, repository = foundation.database, SessionRepository()
    clock, log = foundation.clock, ConversationLog(streams=streams)
    runs = AgentRuns(database=database, repository=repository, log=log, clock=clock)
    settings = foundation.settings.agents
    limits = QueueLimits(most_running=settings.most_runs)
    queue = RunQueue(database=database, repository=repository, runs=runs, limits=limits)
    service = SessionService(
        database=database,
        repository=repository,
        identity=IdentityRepository(),
        access=access,
        runs=runs,
        queue=queue,
        log=log,
        audit=foundation.audit,
        clock=clock,
    )
    app_settings = AppRunSettings(database=database, apps=catalog.apps, configuration=catalog.configuration)
    narrowing = SessionNarrowing(database=database, repository=repository, shares=ShareRepository(), service=service)
    agents = AgentCatalog(programs=AgentPrograms(settings.folders))
    return SessionServices(
        service=service,
        narrowing=narrowing,
        shares=SessionSharing(
            database=database, access=access, identity=IdentityRepository(), narrowing=narrowing, clock=clock
        ),
        chats=Chats(database=database, sessions=service, streams=streams),
        apps=AppSessions(
            database=database,
            service=service,
            access=access,
            apps=catalog.apps,
            configuration=catalog.configuration,
            catalog=AppRepository(),
            repository=AppSessionRepository(),
            gate=gate,
            provider=agents.provider,
        ),
        settings=app_settings,
        runs=runs,
        queue=queue,
        log=RunLog(
            database=database,
            repository=repository,
            log=log,
            steering=SteeredMessages(database=database, repository=repository, clock=clock),
            clock=clock,
            answer_within=timedelta(minutes=settings.question_minutes),
        ),
        todos=TodoService(database=database, access=access),
        questions=QuestionService(
            database=database,
            repository=repository,
            access=access,
            runs=runs,
            queue=queue,
            service=service,
            answers_itself=app_settings.answers_itself,
            audit=foundation.audit,
            clock=clock,
        ),
        lifecycle=SessionLifecycle(
            database=database,
            repository=repository,
            streams=streams,
            clock=clock,
            idle=timedelta(minutes=settings.idle_minutes),
            removal=timedelta(hours=settings.remove_hours),
        ),
        snapshots=SnapshotArchives(
            database=database, access=access, catalog=foundation.catalog, repository=SnapshotRepository()
        ),
        attachments=RunAttachments(database=database, catalog=foundation.catalog),
        forks=SessionForks(
            database=database,
            access=access,
            service=service,
            runs=runs,
            log=log,
            apps=AppForks(database=database, apps=catalog.apps, gate=gate),
        ),
        environments=ProjectEnvironments(database=database, audit=foundation.audit, clock=clock),
        agents=agents,
    )
