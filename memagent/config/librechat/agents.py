"""The agents endpoint (`endpoints.agents`; spec/librechat.md §2.6)."""

from __future__ import annotations

from typing import Final

from memagent.config.librechat.access import MANAGEMENT_API, REMOTE_API
from memagent.config.librechat.code import CODE_SESSIONS
from memagent.config.librechat.names import BASE, ENDPOINT_NAME
from memagent.config.librechat.urls import is_url
from memagent.config.zod import (
    ANYTHING,
    FLAG,
    NUMBER,
    OFF,
    ON,
    TEXT,
    TEXTS,
    Choice,
    Default,
    List,
    Needed,
    Number,
    Object,
    Record,
    Text,
    Union,
)

CAPABILITIES: Final = (
    "hide_sequential_outputs",
    "programmatic_tools",
    "end_after_tools",
    "deferred_tools",
    "execute_code",
    "stateful_code_sessions",
    "file_search",
    "web_search",
    "artifacts",
    "subagents",
    "actions",
    "context",
    "skills",
    "memory",
    "ask_user_question",
    "tools",
    "chain",
    "ocr",
    "run_in_background",
    "tool_intents",
)
DEFAULT_CAPABILITIES: Final = (
    "deferred_tools",
    "execute_code",
    "file_search",
    "web_search",
    "artifacts",
    "subagents",
    "actions",
    "context",
    "skills",
    "memory",
    "ask_user_question",
    "tools",
    "chain",
    "ocr",
)

AGENTS: Final = Object(
    **{name: schema for name, schema in BASE.items() if name != "baseURL"},
    maxProviderErrorChars=Default(Number(int=True, min=0, max=1_000_000), 2000),
    modelResponseBodyTimeoutMs=Default(Number(int=True, min=0, max=86_400_000), 900000),
    modelResponseHeadersTimeoutMs=Default(Number(int=True, min=0, max=86_400_000), 300000),
    recursionLimit=NUMBER,
    disableBuilder=OFF,
    repositoryInstructions=Object(
        timeoutMs=Default(Number(int=True, min=100, max=30_000), 2000),
    ),
    maxRecursionLimit=NUMBER,
    maxToolCallArgBytes=NUMBER,
    maxDeltaEventsPerTurn=NUMBER,
    maxToolCallArgBytesByTool=Record(NUMBER),
    maxRetainedToolCountChars=Default(Number(int=True, min=0), 8388608),
    maxCitations=Default(Number(min=1, max=50), 30),
    maxCitationsPerFile=Default(Number(min=1, max=10), 7),
    minRelevanceScore=Default(Number(min=0, max=1), 0.45),
    maxSubagents=Default(Number(int=True, min=1, max=50), 10),
    fileSharing=Object(
        enabled=OFF,
        allowSiblingSharing=OFF,
        maxFiles=Default(Number(int=True, min=1, max=1000), 100),
        maxPrivateBytes=Default(Number(int=True, min=1, max=10_737_418_240), 268435456),
        ttlMs=Default(Number(int=True, min=1, max=86_400_000), 3600000),
    ),
    codeApiUploadConcurrency=Default(Number(int=True, min=1, max=100), 3),
    codeApiMaxRetryWaitMs=Default(Number(int=True, min=0, max=300_000), 20000),
    allowedProviders=List(Union(TEXT, ENDPOINT_NAME)),
    capabilities=Default(List(Choice(*CAPABILITIES, native=True)), list(DEFAULT_CAPABILITIES)),
    statefulCodeSessions=CODE_SESSIONS,
    eventDriven=Object(
        selfUrl=Text(url=is_url),
    ),
    backgroundTasks=Object(
        completionWakeups=ON,
        completionResultMaxChars=Default(Number(int=True, min=1, max=65_536), 24576),
        completionResultBatchSize=Default(Number(int=True, min=1, max=16), 8),
        ordinaryToolCancellation=OFF,
    ),
    skills=Object(
        maxCatalogSkills=Number(int=True, min=1, max=100),
    ),
    managementApi=MANAGEMENT_API,
    remoteApi=REMOTE_API,
    toolApproval=Object(
        enabled=FLAG,
        mode=Choice("default", "dontAsk", "bypass"),
        allow=TEXTS,
        deny=TEXTS,
        ask=TEXTS,
        reason=TEXT,
        hooks=List(
            Object(
                module=Needed(Text(min=1)),
                matcher=TEXT,
                options=Record(ANYTHING),
            )
        ),
    ),
    askUserQuestion=Object(
        retainedAnswers=Object(
            enabled=FLAG,
            maxTokens=Number(int=True, above=0),
        ),
    ),
    checkpointer=Object(
        type=Choice("mongo", "memory"),
        ttl=Number(int=True, above=0),
        checkpointCollectionName=TEXT,
        checkpointWritesCollectionName=TEXT,
    ),
)
