"""The `langfuse` block."""

from __future__ import annotations

from typing import Final

from memagent.config.zod import FLAG, HEADERS, TEXT, Choice, List, Object

LANGFUSE: Final = Object(
    enabled=FLAG,
    publicKey=TEXT,
    secretKey=TEXT,
    projectId=TEXT,
    secretKeyPreview=TEXT,
    destination=TEXT,
    headers=HEADERS,
    trace=Object(
        userIdField=Choice(
            "id",
            "email",
            "username",
            "name",
            "openidId",
            "samlId",
            "ldapId",
            "googleId",
            "githubId",
            "discordId",
            "appleId",
            "facebookId",
        ),
        userMetadataFields=List(
            Choice(
                "id",
                "email",
                "username",
                "name",
                "openidId",
                "samlId",
                "ldapId",
                "googleId",
                "githubId",
                "discordId",
                "appleId",
                "facebookId",
                "role",
                "provider",
            )
        ),
        conversationMetadataFields=List(
            Choice("conversationId", "endpoint", "endpointType", "provider", "model", "modelLabel", "spec")
        ),
    ),
)
