"""Endpoints, except agents (`endpoints`; spec/librechat.md §2.4, §2.6)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from memagent.config.librechat.addresses import ADDRESSES
from memagent.config.librechat.agents import AGENTS
from memagent.config.librechat.names import BASE, JSON_VALUE, MODELS
from memagent.config.librechat.names import ENDPOINTS as RESERVED
from memagent.config.librechat.parameters import CUSTOM_PARAMS
from memagent.config.zod import (
    FLAG,
    HEADERS,
    NUMBER,
    TEXT,
    TEXTS,
    Both,
    Choice,
    Default,
    List,
    Literal,
    Needed,
    Object,
    Record,
    Refined,
    Run,
    Strict,
    Union,
    rule,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from memagent.config.zod import Problem


def _web_search(params: dict[str, Any], _run: Run) -> Iterable[Problem]:
    if not isinstance(params.get("web_search", False), bool):
        yield ("web_search",), "`web_search` must be a boolean in addParams"


ADD_PARAMS: Final = Refined(Record(JSON_VALUE), _web_search)

ANTHROPIC: Final = Object(
    **BASE,
    vertex=Object(
        enabled=FLAG,
        projectId=TEXT,
        region=Default(TEXT, "us-east5"),
        serviceKeyFile=TEXT,
        deploymentName=TEXT,
        models=Union(
            TEXTS,
            Record(
                Union(
                    Object(
                        deploymentName=TEXT,
                    ),
                    FLAG,
                )
            ),
        ),
    ),
    models=TEXTS,
)

AZURE_MODEL: Final = Union(Object(deploymentName=TEXT, version=TEXT, assistants=FLAG), FLAG)
AZURE_GROUP: Final = Both(
    Object(group=Needed(TEXT), models=Needed(Record(AZURE_MODEL))),
    Object(
        apiKey=Needed(TEXT),
        serverless=FLAG,
        instanceName=TEXT,
        deploymentName=TEXT,
        assistants=FLAG,
        addParams=ADD_PARAMS,
        dropParams=TEXTS,
        version=TEXT,
        baseURL=TEXT,
        additionalHeaders=HEADERS,
    ),
)
AZURE_BASE: Final = (
    "streamRate",
    "titleConvo",
    "titleMethod",
    "titleModel",
    "titlePrompt",
    "titleTiming",
    "titlePromptTemplate",
    *(name for name in BASE if name.startswith(("activity", "reasoning"))),
)
"""What Azure takes of `BASE`, in this order."""

AZURE: Final = Both(
    Object(groups=Needed(List(AZURE_GROUP, min=1)), assistants=FLAG),
    Object(**{name: BASE[name] for name in AZURE_BASE}),
)

ASSISTANTS: Final = Object(
    **BASE,
    disableBuilder=FLAG,
    pollIntervalMs=NUMBER,
    timeoutMs=NUMBER,
    version=Default(Union(TEXT, NUMBER), 2),
    supportedIds=List(TEXT, min=1),
    excludedIds=List(TEXT, min=1),
    privateAssistants=FLAG,
    retrievalModels=Default(
        List(TEXT, min=1),
        [
            "gpt-4o",
            "o1-preview-2024-09-12",
            "o1-preview",
            "o1-mini-2024-09-12",
            "o1-mini",
            "o3-mini",
            "chatgpt-4o-latest",
            "gpt-4o-2024-05-13",
            "gpt-4o-2024-08-06",
            "gpt-4o-mini",
            "gpt-4o-mini-2024-07-18",
            "gpt-4-turbo-preview",
            "gpt-3.5-turbo-0125",
            "gpt-4-0125-preview",
            "gpt-4-1106-preview",
            "gpt-3.5-turbo-1106",
            "gpt-3.5-turbo-0125",
            "gpt-4-turbo",
            "gpt-4-0125",
            "gpt-4-1106",
        ],
    ),
    capabilities=Default(
        List(Choice("code_interpreter", "image_vision", "retrieval", "actions", "tools", native=True)),
        ["code_interpreter", "image_vision", "retrieval", "actions", "tools"],
    ),
    apiKey=TEXT,
    apiKeyPreview=TEXT,
    models=MODELS,
)

CUSTOM: Final = Object(
    **BASE,
    name=Refined(
        TEXT,
        rule(
            lambda name: name not in RESERVED,
            f"Value cannot be one of the default endpoint (EModelEndpoint) values: {', '.join(RESERVED)}",
        ),
    ),
    apiKey=TEXT,
    apiKeyPreview=TEXT,
    models=MODELS,
    iconURL=TEXT,
    modelDisplayLabel=TEXT,
    provider=Literal("anthropic"),
    addParams=ADD_PARAMS,
    dropParams=TEXTS,
    customParams=CUSTOM_PARAMS,
    directEndpoint=FLAG,
    titleMessageRole=Choice("system", "user", "assistant"),
    tokenConfig=Record(
        Object(
            prompt=Needed(NUMBER),
            completion=Needed(NUMBER),
            context=Needed(NUMBER),
            cacheRead=NUMBER,
            cacheWrite=NUMBER,
        )
    ),
)

BEDROCK: Final = Object(
    **BASE,
    availableRegions=TEXTS,
    models=TEXTS,
    guardrailConfig=Object(
        guardrailIdentifier=Needed(TEXT),
        guardrailVersion=Needed(TEXT),
        trace=Choice("enabled", "disabled", "enabled_full"),
        streamProcessingMode=Choice("sync", "async"),
    ),
    inferenceProfiles=HEADERS,
)

ENDPOINTS: Final = Refined(
    Strict(
        allowedAddresses=ADDRESSES,
        all=Object(**{name: schema for name, schema in BASE.items() if name != "baseURL"}),
        openAI=Object(**BASE),
        google=Object(**BASE),
        anthropic=ANTHROPIC,
        azureOpenAI=AZURE,
        azureAssistants=ASSISTANTS,
        assistants=ASSISTANTS,
        agents=AGENTS,
        custom=List(CUSTOM),
        bedrock=BEDROCK,
    ),
    rule(len, "At least one `endpoints` field must be provided."),
)
