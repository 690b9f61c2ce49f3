"""The whole file: the small sections, and the large ones by name (spec/librechat.md §2.6)."""

from __future__ import annotations

from typing import Final

from memagent.config.librechat.addresses import ADDRESSES
from memagent.config.librechat.endpoints import ENDPOINTS
from memagent.config.librechat.files import CLOUDFRONT, FILE_CONFIG, FILE_STRATEGIES, STORAGE
from memagent.config.librechat.filters import FILTERS, MESSAGE_FILTER
from memagent.config.librechat.interface import INTERFACE
from memagent.config.librechat.mcp import MCP_SERVERS, MCP_SETTINGS
from memagent.config.librechat.memory import MEMORY
from memagent.config.librechat.observability import LANGFUSE
from memagent.config.librechat.search import OCR, WEB_SEARCH
from memagent.config.librechat.skills import SKILL_SYNC
from memagent.config.librechat.specs import MODEL_SPECS
from memagent.config.librechat.speech import SPEECH
from memagent.config.librechat.summarization import SUMMARIZATION
from memagent.config.zod import (
    FLAG,
    NUMBER,
    OFF,
    ON,
    TEXT,
    TEXTS,
    Choice,
    Default,
    Needed,
    Number,
    Object,
    Strict,
)

RATE_LIMIT: Final = Object(ipMax=NUMBER, ipWindowInMinutes=NUMBER, userMax=NUMBER, userWindowInMinutes=NUMBER)

ROOT: Final = Strict(
    version=Needed(TEXT),
    permissions=Object(
        maxWriteAttempts=Default(Number(int=True, min=1, max=100), 3),
    ),
    cache=ON,
    ocr=OCR,
    webSearch=WEB_SEARCH,
    langfuse=LANGFUSE,
    memory=MEMORY,
    summarization=SUMMARIZATION,
    skillSync=SKILL_SYNC,
    secureImageLinks=FLAG,
    imageOutputType=Default(Choice("png", "webp", "jpeg", native=True), "png"),
    includedTools=TEXTS,
    filteredTools=TEXTS,
    mcpServers=MCP_SERVERS,
    mcpSettings=MCP_SETTINGS,
    interface=INTERFACE,
    turnstile=Object(
        siteKey=Needed(TEXT),
        options=Default(
            Object(
                language=Default(TEXT, "auto"),
                size=Default(Choice("normal", "compact", "flexible", "invisible"), "normal"),
            ),
            {"language": "auto", "size": "normal"},
        ),
    ),
    fileStrategy=Default(STORAGE, "local"),
    fileStrategies=FILE_STRATEGIES,
    cloudfront=CLOUDFRONT,
    actions=Object(
        allowedDomains=TEXTS,
        allowedAddresses=ADDRESSES,
    ),
    registration=Default(
        Object(
            socialLogins=TEXTS,
            allowedDomains=TEXTS,
            oauthStateTtlMs=Number(int=True, min=60_000, max=3_600_000),
            openidDiscovery=Object(
                startupAttempts=Default(Number(int=True, min=0, max=100), 1),
                retryDelayMs=Default(Number(int=True, min=100, max=3_600_000), 5000),
            ),
        ),
        {"socialLogins": ["google", "facebook", "openid", "github", "discord", "saml"]},
    ),
    balance=Object(
        enabled=OFF,
        startBalance=Default(NUMBER, 20000),
        autoRefillEnabled=OFF,
        refillIntervalValue=Default(NUMBER, 30),
        refillIntervalUnit=Default(Choice("seconds", "minutes", "hours", "days", "weeks", "months"), "days"),
        refillAmount=Default(NUMBER, 10000),
        reservationTtlMs=Default(Number(int=True, min=10_000), 1800000),
    ),
    transactions=Object(
        enabled=ON,
    ),
    speech=SPEECH,
    rateLimits=Object(
        agentEvents=Object(
            userMax=Number(int=True, above=0),
            userWindowInMinutes=Number(above=0),
        ),
        fileUploads=RATE_LIMIT,
        conversationsImport=RATE_LIMIT,
        tts=RATE_LIMIT,
        stt=RATE_LIMIT,
    ),
    fileConfig=FILE_CONFIG,
    modelSpecs=MODEL_SPECS,
    filters=FILTERS,
    messageFilter=MESSAGE_FILTER,
    endpoints=ENDPOINTS,
    openapi=Object(
        enabled=FLAG,
    ),
)
