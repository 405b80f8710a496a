"""Apps: the registry, the store, configuration, manifests, knowledge bases."""

from dataclasses import dataclass

from contextbase.bootstrap.foundation import Foundation
from contextbase.catalog.app_files import AppFileAccess
from contextbase.catalog.configuration import AgentConfiguration
from contextbase.catalog.knowledge import KnowledgeBases
from contextbase.catalog.manifests import RuntimeManifests
from contextbase.catalog.repository import AppRepository
from contextbase.catalog.service import AppService
from contextbase.catalog.tree_access import AppTreeAccess
from contextbase.identity.policy_repository import PolicyRepository
from contextbase.identity.repository import IdentityRepository
from contextbase.models.sealing import KeySealer
from contextbase.storage.projects import ProjectService

__all__ = ["CatalogServices", "catalog_of"]


@dataclass(frozen=True, kw_only=True, slots=True)
class CatalogServices:
    apps: AppService
    files: AppFileAccess
    configuration: AgentConfiguration
    manifests: RuntimeManifests
    knowledge: KnowledgeBases


def catalog_of(foundation: Foundation, projects: ProjectService) -> CatalogServices:
    database, repository, audit, clock = foundation.database, AppRepository(), foundation.audit, foundation.clock
    tree_access = AppTreeAccess(repository=PolicyRepository(), identity=IdentityRepository())
    apps = AppService(
        database=database,
        repository=repository,
        identity=IdentityRepository(),
        projects=projects,
        tree_access=tree_access,
        audit=audit,
        clock=clock,
    )
    return CatalogServices(
        apps=apps,
        files=AppFileAccess(database=database, apps=apps, tree_access=tree_access, audit=audit, clock=clock),
        configuration=AgentConfiguration(
            database=database,
            repository=repository,
            apps=apps,
            sealer=KeySealer(foundation.audit_key.secret),
            clock=clock,
        ),
        manifests=RuntimeManifests(database=database, repository=repository, apps=apps, audit=audit, clock=clock),
        knowledge=KnowledgeBases(database=database, repository=repository, apps=apps),
    )
