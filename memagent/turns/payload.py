"""A turn as it waits: JSON of what was said. It is kept under its user's own slot and taken away when it is done."""

from __future__ import annotations

import base64
import hashlib
import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from memagent.errors import NoUserKey
from memagent.service.recall import VISIBLE_MESSAGES
from memagent.service.receipt import RecallNote
from memagent.turn import parse_turn

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cryptography.fernet import Fernet

    from memagent.memory import Message
    from memagent.turn import Turn

ID_BYTES = 16


def turn_id(turn: Turn) -> str:
    """The id of a turn, the same for the same message however often it comes: of its message id and its partition."""
    words = json.dumps([turn.agent_id, turn.message_id]).encode(errors="surrogatepass")
    return "t" + hashlib.blake2b(words, digest_size=ID_BYTES).hexdigest()


class Envelope:
    """Turns into JSON and back. A user's own key is encrypted with the session secret; without one it is not taken."""

    def __init__(self, secret: str | None, *, window: int) -> None:
        self._secret = secret
        self._most = max(VISIBLE_MESSAGES, window)

    def seal(self, turn: Turn, recalled: RecallNote | None) -> str:
        """Raises `NoUserKey` for a key of the user's that could only be kept in the clear."""
        said: dict[str, Any] = {
            "user": turn.user,
            "message_id": turn.message_id,
            "conversation_id": turn.conversation_id,
            # What is further back neither fills the window nor is in sight of a tag.
            "messages": [_message(message) for message in turn.messages[-self._most :]],
            "agent_id": turn.agent_id,
            "shared": list(turn.shared),
            "channel": turn.channel,
            "user_fields": dict(turn.user_fields),
        }
        key = None if turn.user_key is None else self._cipher().encrypt(turn.user_key.encode()).decode()
        note = None if recalled is None else recalled.to_json()
        return json.dumps({"turn": said, "key": key, "recalled": note}, ensure_ascii=False)

    def open(self, payload: str) -> tuple[Turn, RecallNote | None]:
        """The turn and what was recalled for it; raises `NoUserKey` when the session secret has changed since."""
        from cryptography.fernet import InvalidToken  # noqa: PLC0415  only where a key was sealed

        held: Mapping[str, Any] = json.loads(payload)
        turn = parse_turn(held["turn"])
        if held["key"] is not None:
            try:
                key = self._cipher().decrypt(held["key"].encode()).decode()
            except InvalidToken:
                raise NoUserKey("the user's key was sealed with another MEMAGENT_SESSION_SECRET") from None
            turn = replace(turn, user_key=key)
        note = held["recalled"]
        return turn, None if note is None else RecallNote.from_json(note)

    def _cipher(self) -> Fernet:
        from cryptography.fernet import Fernet  # noqa: PLC0415  loads OpenSSL

        if not self._secret:
            raise NoUserKey(
                "a turn with a key of the user's waits only where it can be encrypted: set MEMAGENT_SESSION_SECRET"
            )
        derived = hashlib.blake2b(self._secret.encode(), digest_size=32, person=b"memagent-turns").digest()
        return Fernet(base64.urlsafe_b64encode(derived))


def _message(message: Message) -> dict[str, Any]:
    content = list(message.content) if isinstance(message.content, tuple) else message.content
    calls = [
        {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
        for call in message.tool_calls
    ]
    return {
        "role": message.role,
        "content": content,
        "id": message.id,
        "name": message.name,
        "tool_calls": calls or None,
        "tool_call_id": message.tool_call_id,
    }
