"""Bodies about models: services, allowed models, budgets; and about hosts that sandboxes may reach."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from contextbase.agent_vocabulary import UsageGroup
from contextbase.vocabulary import BudgetScope, ModelProtocol, ModelRole, UpstreamScope
from contextbase.wire.project import NAME_OR_ID

__all__ = [
    "EgressHosts",
    "ModelAllow",
    "ModelBudgetList",
    "ModelBudgetSet",
    "ModelBudgetView",
    "ModelList",
    "ModelPrices",
    "ModelRemoved",
    "ModelView",
    "UpstreamCreate",
    "UpstreamList",
    "UpstreamTested",
    "UpstreamView",
    "UsageRowView",
    "UsageTable",
]

MicroUnits = Annotated[int, Field(ge=0, lt=2**40, strict=True)]


class ModelPrices(BaseModel):
    """Micro-units of the currency for a million tokens: 3000000 is 3 dollars."""

    model_config = ConfigDict(extra="forbid")

    input: MicroUnits
    output: MicroUnits
    cache_read: MicroUnits
    cache_write: MicroUnits


class ModelAllow(BaseModel):
    model_config = ConfigDict(extra="forbid")

    name: str = Field(description="As the service calls it.", min_length=1, max_length=200, pattern=r"^[!-~]+$")
    protocol: ModelProtocol
    role: ModelRole = ModelRole.MAIN
    prices: ModelPrices | None = Field(None, description="Null: the built-in ones, or the dearest of them.")


class ModelView(BaseModel):
    name: str
    protocol: ModelProtocol
    role: ModelRole
    prices: ModelPrices | None


class ModelList(BaseModel):
    models: list[ModelView] = Field(description="Empty: those with a built-in price are allowed.")


class ModelRemoved(BaseModel):
    name: str = Field(description="Of the model, or the service, that is gone.")


class UpstreamCreate(BaseModel):
    model_config = ConfigDict(extra="forbid")

    name: str = Field(max_length=100, pattern="^[a-z0-9][a-z0-9._-]*$")
    protocol: ModelProtocol
    url: str = Field(description="Base URL, such as https://api.anthropic.com.", max_length=2000)
    key: str = Field("", description="Stored sealed, and never shown again.", max_length=10_000, repr=False)
    scope: UpstreamScope = UpstreamScope.PLATFORM
    project: str | None = Field(
        None, description="Name or id, for the scope 'project'.", max_length=100, pattern=NAME_OR_ID
    )


class UpstreamView(BaseModel):
    name: str
    protocol: ModelProtocol
    url: str
    scope: UpstreamScope
    subject: str = Field(description="The project or the user it belongs to.")
    has_key: bool
    source: Literal["added", "settings"]


class UpstreamList(BaseModel):
    upstreams: list[UpstreamView]


class UpstreamTested(BaseModel):
    name: str
    is_well: bool
    http_status: int | None = Field(description="The HTTP status of its list of models; null: it did not answer.")
    message: str


class ModelBudgetSet(BaseModel):
    model_config = ConfigDict(extra="forbid")

    scope: BudgetScope
    subject: str = Field(description="A project, or a user such as user:ann.", min_length=1, max_length=120)
    monthly_limit: MicroUnits | None = Field(description="Micro-units in a calendar month (UTC); null: no limit.")


class ModelBudgetView(BaseModel):
    scope: BudgetScope
    subject: str
    monthly_limit: int
    spent: int = Field(description="This month, in micro-units.")
    reserved: int = Field(description="By requests under way.")


class ModelBudgetList(BaseModel):
    budgets: list[ModelBudgetView]


class UsageRowView(BaseModel):
    subject: str = Field(description="A person such as user:ann, a project, a model, or a day (UTC).")
    requests: int
    input: int = Field(description="Tokens, without those of the cache.")
    output: int
    cache_read: int
    cache_write: int
    cost: int = Field(description="In micro-units.")


class UsageTable(BaseModel):
    by: UsageGroup
    rows: list[UsageRowView] = Field(description="The dearest first; days the newest first.")


class EgressHosts(BaseModel):
    model_config = ConfigDict(extra="forbid")

    hosts: list[str] = Field(
        max_length=500, description="pypi.org, *.example.com, example.com:8443, preset:pip, preset:npm, preset:git …"
    )
