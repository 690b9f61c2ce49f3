"""Files: where they are kept and which are taken (`fileStrategy`, `fileStrategies`, `fileConfig`, `cloudfront`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from memagent.config.librechat.re2 import program_size
from memagent.config.librechat.urls import is_url
from memagent.config.zod import (
    FLAG,
    OFF,
    TEXT,
    Choice,
    Default,
    List,
    Needed,
    Number,
    Object,
    Record,
    Refined,
    Run,
    Text,
    rule,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from memagent.config.zod import Problem

STORAGE: Final = Choice("local", "firebase", "s3", "azure_blob", "cloudfront")

DELIVERY_WAY: Final = Choice("provider", "text", "none")
DELIVERY: Final = Object(fallback=DELIVERY_WAY, overrides=Record(DELIVERY_WAY))

MIME_TYPES: Final = List(
    Refined(
        TEXT,
        rule(
            lambda regex: program_size(regex) is not None,
            "Invalid MIME type regex: not supported by the configured regex engine",
        ),
    )
)

FILE_STRATEGIES: Final = Object(
    default=STORAGE,
    avatar=STORAGE,
    image=STORAGE,
    document=STORAGE,
    skills=STORAGE,
)

FILE_CONFIG: Final = Object(
    endpoints=Record(
        Object(
            disabled=FLAG,
            fileLimit=Number(min=0),
            fileSizeLimit=Number(min=0),
            totalSizeLimit=Number(min=0),
            supportedMimeTypes=MIME_TYPES,
            defaultLLMDeliveryPath=DELIVERY,
            legacyFileUploadUX=FLAG,
            textFallbackWithoutTools=FLAG,
        )
    ),
    skills=Object(
        fileSizeLimit=Number(min=0),
        importCleanupConcurrency=Number(int=True, above=0),
    ),
    serverFileSizeLimit=Number(min=0),
    avatarSizeLimit=Number(min=0),
    fileTokenLimit=Number(min=0),
    fileContextSizeLimit=Number(min=0),
    fileContextCharLimit=Number(min=0),
    codeEnvLivenessSafeWindowMs=Number(min=0),
    imageGeneration=Object(
        percentage=Number(min=0, max=100),
        px=Number(min=0),
    ),
    clientImageResize=Object(
        enabled=FLAG,
        maxWidth=Number(min=1),
        maxHeight=Number(min=1),
        quality=Number(min=0, max=1),
    ),
    ocr=Object(
        supportedMimeTypes=MIME_TYPES,
    ),
    text=Object(
        supportedMimeTypes=MIME_TYPES,
    ),
    defaultLLMDeliveryPath=DELIVERY,
    legacyFileUploadUX=FLAG,
    textFallbackWithoutTools=FLAG,
)


def _signing(settings: dict[str, Any], _run: Run) -> Iterable[Problem]:
    if settings["invalidateOnDelete"] and not settings.get("distributionId"):
        yield ("distributionId",), "distributionId is required when invalidateOnDelete is true"
    if settings["imageSigning"] == "cookies" and not settings.get("cookieDomain"):
        yield (
            ("cookieDomain",),
            (
                'cookieDomain is required when imageSigning is "cookies" (e.g., ".example.com" for API at '
                "api.example.com and CDN at cdn.example.com)"
            ),
        )
    if settings["requireSignedAccess"] and settings["imageSigning"] != "cookies":
        yield (
            ("requireSignedAccess",),
            (
                'cloudfront.requireSignedAccess=true requires cloudfront.imageSigning="cookies" (signed URL mode is '
                "not yet implemented)"
            ),
        )


CLOUDFRONT: Final = Refined(
    Object(
        domain=Needed(Text(url=is_url)),
        distributionId=TEXT,
        invalidateOnDelete=OFF,
        imageSigning=Default(Choice("none", "cookies", "url"), "none"),
        urlExpiry=Default(Number(above=0), 3600),
        cookieExpiry=Default(Number(above=0, max=604_800), 1800),
        cookieDomain=Refined(
            Text(min=1),
            rule(
                lambda domain: domain.startswith("."),
                'cookieDomain must start with a dot (e.g., ".example.com") to apply to subdomains',
            ),
        ),
        storageRegion=Text(min=1),
        includeRegionInPath=OFF,
        requireSignedAccess=OFF,
    ),
    _signing,
)
