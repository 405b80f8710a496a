"""Finding files by name and by what is in them."""

from contextbase.search.model import ContentPage, ContentQuery, FoundFile, NamePage, NameQuery
from contextbase.search.path_filter import PathFilter
from contextbase.search.pattern import TextPattern
from contextbase.search.service import SearchService
from contextbase.search.shown_line import FoundLine
from contextbase.tools.arguments import ArgumentKind, Parameter
from contextbase.tools.file_tools import folder_argument
from contextbase.tools.model import LONGEST_ANSWER, Tool, ToolCall, ToolPlace, ToolResult
from contextbase.tools.wording import fitting, listed
from contextbase.workspaces.workspace_search import WorkspaceSearch

__all__ = ["SearchTools"]

_CURSOR = Parameter(name="cursor", description="From the answer before.")
_FOLDER = Parameter(name="subDir", description="Only below this folder.")
_MOST_NAMES = 200
_MOST_MATCHES = 60
_MOST_SKIPPED = 5


class SearchTools:
    def __init__(self, *, projects: SearchService, workspaces: WorkspaceSearch) -> None:
        self._projects = projects
        self._workspaces = workspaces

    @property
    def tools(self) -> tuple[Tool, ...]:
        return (
            Tool(
                name="find_files",
                description="Find files by name: a glob such as *.md or docs/**, or words of the path.",
                parameters=(Parameter(name="pattern", is_required=True, longest=200), _FOLDER, _CURSOR),
                run=self.find_files,
            ),
            Tool(
                name="search_files",
                description="Search the text of all files (grep): literal, or an RE2 expression with regex.",
                parameters=(
                    Parameter(name="text", is_required=True, longest=1000),
                    Parameter(name="regex", kind=ArgumentKind.FLAG),
                    Parameter(name="ignoreCase", kind=ArgumentKind.FLAG),
                    Parameter(name="glob", description="Only such files, as *.py.", longest=200),
                    _FOLDER,
                    Parameter(
                        name="context", kind=ArgumentKind.NUMBER, description="Lines around each.", least=0, most=10
                    ),
                    _CURSOR,
                ),
                is_basic=True,
                run=self.search_files,
            ),
        )

    async def find_files(self, call: ToolCall) -> ToolResult:
        pattern = call.arguments.text("pattern").strip()
        is_glob = any(sign in pattern for sign in "*?[") or pattern.endswith("/")
        files = PathFilter.parse(folder_argument(call), (pattern,) if is_glob else ())
        query = NameQuery(words="" if is_glob else pattern, files=files)
        limit = _MOST_NAMES
        while True:
            found = await self._names(call.place, query, call.arguments.text("cursor") or None, limit)
            lines, fits = fitting(map(str, found.paths), LONGEST_ANSWER)
            if fits or limit == 1:
                break
            limit = max(1, len(lines))  # the cursor must go on where the answer ends
        note = f"There are more: call find_files again with cursor={found.cursor!r}." if found.cursor else ""
        text = "\n".join(lines) or f"No file matches {pattern!r}. Try fewer words, or list_files."
        return ToolResult(text=text, note=note, data={"paths": list(found.paths), "cursor": found.cursor})

    async def search_files(self, call: ToolCall) -> ToolResult:
        arguments = call.arguments
        glob = arguments.text("glob")
        query = ContentQuery(
            pattern=TextPattern(
                text=arguments.text("text"),
                is_expression=arguments.flag("regex"),
                ignore_case=arguments.flag("ignoreCase"),
            ),
            files=PathFilter.parse(folder_argument(call), (glob,) if glob else ()),
            context=arguments.number("context", 0),
        )
        limit = _MOST_MATCHES
        while True:
            found = await self._contents(call.place, query, arguments.text("cursor") or None, limit)
            text = "\n".join(map(_shown, found.files))
            if len(text) <= LONGEST_ANSWER or limit == 1:
                break
            limit = max(1, limit // 2)  # fewer matches, so that the cursor goes on where the answer ends
        skipped = [one.path for one in found.skipped]
        notes = []
        if skipped:
            notes.append(f"Not searched, too large or damaged: {listed(skipped, _MOST_SKIPPED)}.")
        if found.cursor:
            notes.append(f"There may be more: call search_files again with cursor={found.cursor!r}.")
        if not text:
            text = "Nothing found so far." if found.cursor else f"No file has {query.pattern.text[:80]!r}."
        matches = [_match(file, line) for file in found.files for line in file.lines]
        data = {"matches": matches, "skipped": skipped, "cursor": found.cursor}
        return ToolResult(text=text, note=" ".join(notes), data=data)

    async def _names(self, place: ToolPlace, query: NameQuery, cursor: str | None, limit: int) -> NamePage:
        if place.is_workspace:
            return await self._workspaces.names(place.caller, place.workspace, query, cursor=cursor, limit=limit)
        return await self._projects.names(place.acting, place.project_id, query, cursor=cursor, limit=limit)

    async def _contents(self, place: ToolPlace, query: ContentQuery, cursor: str | None, limit: int) -> ContentPage:
        if place.is_workspace:
            return await self._workspaces.contents(place.caller, place.workspace, query, cursor=cursor, limit=limit)
        return await self._projects.contents(place.acting, place.project_id, query, cursor=cursor, limit=limit)


def _shown(file: FoundFile) -> str:
    """As grep prints it, with each path once."""
    return "\n".join([str(file.path), *(f"{line.number}{_sign(line)} {line.text}" for line in file.lines)])


def _sign(line: FoundLine) -> str:
    return "-" if line.ranges is None else ":"


def _match(file: FoundFile, line: FoundLine) -> dict[str, object]:
    return {"path": file.path, "line": line.number, "text": line.text, "isMatch": line.ranges is not None}
