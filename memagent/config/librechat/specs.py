"""Model specs: named presets of the chat window (`modelSpecs`; spec/librechat.md §2.7)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from memagent.config.librechat.names import COERCED, DOCUMENT, ENDPOINT_NAME, SLUG
from memagent.config.zod import (
    FLAG,
    NUMBER,
    OFF,
    ON,
    TEXT,
    TEXTS,
    UNDEFINED,
    Choice,
    Default,
    List,
    Needed,
    Nullable,
    Number,
    Object,
    Refined,
    Run,
    Strict,
    Text,
    Union,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from memagent.config.zod import Problem

PLUGIN: Final = Object(
    name=Needed(TEXT),
    pluginKey=Needed(TEXT),
    description=TEXT,
    icon=TEXT,
    authConfig=List(
        Object(
            authField=Needed(TEXT),
            label=Needed(TEXT),
            description=Needed(TEXT),
            optional=FLAG,
            sensitive=FLAG,
        )
    ),
    authenticated=FLAG,
    chatMenu=FLAG,
    isButton=FLAG,
    toolkit=FLAG,
    serverToolName=TEXT,
)


def _endpoint(preset: dict[str, Any], _run: Run) -> Iterable[Problem]:
    """The endpoint may be left out, not null, where an agent names it."""
    if preset.get("endpoint", UNDEFINED) is UNDEFINED and not preset.get("agent_id"):
        yield (
            ("endpoint",),
            "endpoint is required unless the preset names a non-empty agent_id (the agents endpoint is then inferred)",
        )


PRESET: Final = Refined(
    Object(
        endpoint=Nullable(Union(ENDPOINT_NAME, TEXT)),
        endpointType=Nullable(ENDPOINT_NAME),
        archivedAt=Nullable(TEXT),
        pinned=FLAG,
        isShared=FLAG,
        codeApprovalMode=Choice("ask", "acceptEdits", "fullAccess"),
        codeEnvironmentMode=Choice("attached", "without_attached"),
        codeWorkspaces=List(
            Strict(
                environmentId=Needed(SLUG),
                workspaceId=Needed(SLUG),
            )
        ),
        tools=Union(List(PLUGIN), TEXTS),
        modelLabel=Nullable(TEXT),
        userLabel=TEXT,
        model=Nullable(TEXT),
        promptPrefix=Nullable(TEXT),
        temperature=Nullable(NUMBER),
        topP=NUMBER,
        topK=NUMBER,
        top_p=NUMBER,
        frequency_penalty=NUMBER,
        presence_penalty=NUMBER,
        maxOutputTokens=Nullable(COERCED),
        maxContextTokens=COERCED,
        max_tokens=COERCED,
        promptCache=FLAG,
        promptCacheTtl=Choice("5m", "1h"),
        system=TEXT,
        thinking=FLAG,
        thinkingBudget=COERCED,
        thinkingLevel=Choice("", "minimal", "low", "medium", "high", native=True),
        stream=FLAG,
        artifacts=TEXT,
        context=Nullable(TEXT),
        examples=List(
            Object(
                input=Needed(
                    Object(
                        content=Needed(TEXT),
                    )
                ),
                output=Needed(
                    Object(
                        content=Needed(TEXT),
                    )
                ),
            )
        ),
        resendFiles=FLAG,
        imageDetail=Choice("low", "auto", "high", native=True),
        reasoning_effort=Nullable(
            Choice(
                "",
                "none",
                "minimal",
                "low",
                "medium",
                "high",
                "xhigh",
                "max",
                native=True,
            )
        ),
        reasoning_summary=Nullable(Choice("", "auto", "concise", "detailed", native=True)),
        reasoning_mode=Nullable(Choice("", "standard", "pro", native=True)),
        reasoning_context=Nullable(Choice("", "auto", "current_turn", "all_turns", native=True)),
        verbosity=Nullable(Choice("", "low", "medium", "high", native=True)),
        useResponsesApi=FLAG,
        effort=Nullable(Choice("", "low", "medium", "high", "xhigh", "max", native=True)),
        thinkingDisplay=Nullable(Choice("auto", "summarized", "omitted", native=True)),
        web_search=FLAG,
        url_context=FLAG,
        disableStreaming=FLAG,
        assistant_id=TEXT,
        agent_id=TEXT,
        subagentThread=Object(
            rootConversationId=Needed(Text(min=1)),
            parentConversationId=Needed(Text(min=1)),
            parentMessageId=Needed(Text(min=1)),
            parentToolCallId=Needed(Text(min=1)),
            parentAgentId=Text(min=1),
            subagentType=Needed(Text(min=1)),
            subagentKind=Needed(Choice("agent", "graph")),
            depth=Needed(Number(int=True, above=0)),
        ),
        region=TEXT,
        maxTokens=COERCED,
        additionalModelRequestFields=DOCUMENT,
        instructions=TEXT,
        additional_instructions=TEXT,
        append_current_datetime=FLAG,
        stop=TEXTS,
        greeting=TEXT,
        iconURL=Nullable(TEXT),
        isTemporary=FLAG,
        fileTokenLimit=COERCED,
    ),
    _endpoint,
)


def _count(subagents: dict[str, Any], run: Run) -> Iterable[Problem]:
    if len(subagents.get("agent_ids", ())) > run.max_subagents:
        yield ("agent_ids",), f"agent_ids must contain at most {run.max_subagents} item(s)"


SUBAGENTS: Final = Refined(Object(enabled=FLAG, allowSelf=FLAG, shareFiles=FLAG, agent_ids=TEXTS), _count)

SPEC: Final = Object(
    name=Needed(TEXT),
    label=Needed(TEXT),
    preset=Needed(PRESET),
    order=NUMBER,
    default=FLAG,
    softDefault=FLAG,
    description=TEXT,
    group=TEXT,
    groupIcon=Union(TEXT, ENDPOINT_NAME),
    showIconInMenu=FLAG,
    showIconInHeader=FLAG,
    showOnLanding=FLAG,
    conversation_starters=TEXTS,
    showInMenu=FLAG,
    iconURL=Union(TEXT, ENDPOINT_NAME),
    authType=Choice("override_auth", "user_provided", "system_defined", native=True),
    hideBadgeRow=FLAG,
    webSearch=FLAG,
    fileSearch=FLAG,
    executeCode=FLAG,
    memory=FLAG,
    askUserQuestion=FLAG,
    runInBackground=Union(FLAG, TEXTS),
    describeIntent=Union(FLAG, TEXTS),
    artifacts=Union(TEXT, FLAG),
    mcpServers=TEXTS,
    skills=Union(FLAG, TEXTS),
    subagents=SUBAGENTS,
)

MODEL_SPECS: Final = Object(
    enforce=OFF,
    prioritize=ON,
    list=Default(
        List(SPEC),
        [],
    ),
    addedEndpoints=List(Union(TEXT, ENDPOINT_NAME)),
)
