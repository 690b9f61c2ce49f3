"""Models that play a script: in process for tests, and as an OpenAI-compatible server on loopback for tests and the demo.

The server knows `/v1/models`, `/v1/chat/completions` (whole and streamed) and `/v1/embeddings`.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import math
import socket
import threading
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from typing import TYPE_CHECKING, Any

from memagent.errors import ModelRefused, ModelReplyInvalid, ModelUnavailable
from memagent.lexicon import fold, terms
from memagent.llm import ModelReply, Usage, wire
from memagent.llm.script import Script
from memagent.memory import ToolCall
from memagent.tokens import count_tokens
from memagent.turn import text_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path
    from typing import Self

    from memagent.llm import ToolSpec
    from memagent.llm.script import Answer
    from memagent.memory import Message

DEFAULT_DIMENSIONS = 256
_POLL_S = 0.02
_OK = 200


class ScriptedModel:
    """A `ChatModel` that plays a script in process; `requests` are the messages it was asked with."""

    def __init__(self, script: Script) -> None:
        self._script = script
        self.requests: list[tuple[Message, ...]] = []

    async def complete(self, messages: Sequence[Message], *, tools: Sequence[ToolSpec] = ()) -> ModelReply:
        self.requests.append(tuple(messages))
        user = next((text_of(each.content) for each in reversed(messages) if each.role == "user"), "")
        answer = self._script.play(user, offers_tools=bool(tools))
        await asyncio.sleep(answer.delay_s)
        if answer.drop or answer.status >= 500 or answer.status in {408, 429}:  # noqa: PLR2004  HTTP's own numbers
            raise ModelUnavailable(f"the scripted model answered {answer.status}")
        if answer.status != _OK:
            raise ModelRefused(f"the scripted model answered {answer.status}")
        if answer.body is not None:
            raise ModelReplyInvalid("the scripted model's answer cannot be read")
        asked = sum(count_tokens(text_of(each.content)) for each in messages)
        return _reply(answer, model=self._script.model, asked=asked, number=len(self.requests))


def _reply(answer: Answer, *, model: str, asked: int, number: int) -> ModelReply:
    """Make the reply of an answer; `asked` tokens stand for a usage that is not recorded, `number` makes ids of calls."""
    calls = tuple(
        ToolCall(call.id or f"call_{number}_{place}", call.name, call.arguments)
        for place, call in enumerate(answer.calls, 1)
    )
    said = count_tokens(answer.text) + sum(count_tokens(call.arguments) for call in calls)
    return ModelReply(answer.text, calls, answer.usage or Usage(asked, said), model, answer.ending)


def hash_vector(text: str, dimensions: int = DEFAULT_DIMENSIONS) -> tuple[float, ...]:
    """Return a unit vector of the words of `text` and their letter triples: texts that share words are near each other.

    The same on every machine; a text without words is the first axis.
    """
    vector = [0.0] * dimensions
    for word in terms(text) or (fold(text),):
        padded = f" {word} "
        for feature, weight in ((word, 2.0), *((padded[at : at + 3], 1.0) for at in range(len(padded) - 2))):
            number = int.from_bytes(
                hashlib.blake2b(feature.encode("utf-8", "replace"), digest_size=8).digest(), "big"
            )
            vector[(number >> 1) % dimensions] += weight if number & 1 else -weight
    length = math.sqrt(sum(each * each for each in vector))
    if not length:
        return (1.0, *[0.0] * (dimensions - 1))
    return tuple(each / length for each in vector)


@dataclass(frozen=True, slots=True)
class Recorded:
    """A request as it came in; header names in lower case, a body that is no JSON object as an empty one."""

    method: str
    path: str
    headers: Mapping[str, str] = field(repr=False)
    body: Mapping[str, Any] = field(repr=False)


class ScriptedServer:
    """An OpenAI-compatible server on loopback: `async with ScriptedServer(script) as server: server.base_url`.

    `requests` are what came in, in order. With `api_key` any other bearer is answered 401.
    """

    def __init__(
        self, script: Script, *, api_key: str | None = None, host: str = "127.0.0.1", port: int = 0
    ) -> None:
        self.script = script
        self.api_key = api_key
        self.requests: list[Recorded] = []
        self._address = (host, port)
        self._http: _Http | None = None

    @classmethod
    def from_yaml(cls, path: Path, *, port: int = 0) -> ScriptedServer:
        """Serve a file of recorded answers; raises `BadRequest` that names the place of a fault."""
        return cls(Script.from_yaml(path), port=port)

    @property
    def base_url(self) -> str:
        if self._http is None:
            raise RuntimeError("the scripted server is not running")
        host, port = self._http.server_address[:2]
        return f"http://{host!s}:{port}/v1"

    def start(self) -> None:
        self._http = _Http(self._address, self)
        threading.Thread(
            target=self._http.serve_forever, args=(_POLL_S,), name="scripted-server", daemon=True
        ).start()

    def stop(self) -> None:
        if self._http is not None:
            self._http.stop()
            self._http = None

    async def __aenter__(self) -> Self:
        self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await asyncio.to_thread(self.stop)


class _Http(ThreadingHTTPServer):
    request_queue_size = 128
    """The standard library's queue of five makes the next caller wait for a second."""

    def __init__(self, address: tuple[str, int], owner: ScriptedServer) -> None:
        super().__init__(address, _Handler)
        self.owner = owner
        self.numbers = count(1)
        self.stopping = threading.Event()
        self.connections: set[socket.socket] = set()

    def stop(self) -> None:
        self.stopping.set()
        self.shutdown()
        for connection in tuple(self.connections):
            _hang_up(connection)
        self.server_close()


def _hang_up(connection: socket.socket) -> None:
    with suppress(OSError):  # The other side hung up first.
        connection.shutdown(socket.SHUT_RDWR)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # Head and body are written apart, and would wait for each other.
    server: _Http

    def setup(self) -> None:
        super().setup()
        self.server.connections.add(self.connection)

    def finish(self) -> None:
        self.server.connections.discard(self.connection)
        with suppress(OSError):  # A caller that went away needs no goodbye.
            super().finish()

    def handle(self) -> None:
        try:
            super().handle()
        except OSError:
            self.close_connection = True  # A caller that gave up while it was answered is part of the play.

    def log_message(self, *_: object) -> None:
        """Say nothing: requests are kept, not printed."""

    def do_GET(self) -> None:
        self._record()
        if self._path() == "/v1/models":
            model = {
                "id": self.server.owner.script.model,
                "object": "model",
                "created": 0,
                "owned_by": "memagent",
            }
            self._send_json({"object": "list", "data": [model]})
        else:
            self._send_error(404, "no such path")

    def do_POST(self) -> None:
        body = self._record()
        owner = self.server.owner
        if owner.api_key is not None and self.headers.get("Authorization") != f"Bearer {owner.api_key}":
            self._send_error(401, "wrong API key")
        elif self._path() == "/v1/embeddings":
            self._embed(body)
        elif self._path() == "/v1/chat/completions":
            self._play(body)
        else:
            self._send_error(404, "no such path")

    def _path(self) -> str:
        return self.path.partition("?")[0].rstrip("/")

    def _record(self) -> Mapping[str, Any]:
        raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        try:
            body = json.loads(raw or b"{}")
        except ValueError:
            body = {}
        body = body if isinstance(body, dict) else {}
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.server.owner.requests.append(Recorded(self.command, self.path, headers, body))
        return body

    def _play(self, body: Mapping[str, Any]) -> None:
        script = self.server.owner.script
        answer = script.play(_last_user_text(body), offers_tools=bool(body.get("tools")))
        stopping = answer.delay_s > 0 and self.server.stopping.wait(answer.delay_s)
        if answer.drop or stopping:
            self.close_connection = True
            _hang_up(self.connection)
        elif answer.body is not None:
            self._send(answer.status, answer.body.encode(), "application/json")
        elif answer.status != _OK:
            self._send_error(answer.status, "recorded failure", location=answer.location)
        else:
            model = str(body.get("model") or script.model)
            number = next(self.server.numbers)
            reply = _reply(
                answer, model=model, asked=count_tokens(json.dumps(body.get("messages"))), number=number
            )
            if body.get("stream"):
                options = body.get("stream_options")
                with_usage = isinstance(options, dict) and bool(options.get("include_usage"))
                self._send_events(wire.events(reply, id=f"chatcmpl-{number}", with_usage=with_usage))
            else:
                self._send_json(wire.completion(reply, id=f"chatcmpl-{number}"))

    def _embed(self, body: Mapping[str, Any]) -> None:
        given = body.get("input")
        texts = [str(text) for text in given] if isinstance(given, list) else [str(given or "")]
        dimensions = int(body.get("dimensions") or DEFAULT_DIMENSIONS)
        answer = wire.embeddings(
            [hash_vector(text, dimensions) for text in texts],
            model=str(body.get("model") or self.server.owner.script.model),
            tokens=sum(map(count_tokens, texts)),
            base64_encoded=body.get("encoding_format") == "base64",
        )
        self._send_json(answer)

    def _send_json(self, body: Mapping[str, Any]) -> None:
        self._send(_OK, json.dumps(body).encode(), "application/json")

    def _send_error(self, status: int, message: str, *, location: str = "") -> None:
        error = {"error": {"message": message, "type": "scripted", "code": "scripted_failure"}}
        self._send(status, json.dumps(error).encode(), "application/json", location=location)

    def _send(self, status: int, body: bytes, kind: str, *, location: str = "") -> None:
        self.send_response(status)
        if location:
            self.send_header("Location", location)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _send_events(self, events: Iterator[bytes]) -> None:
        self.send_response(_OK)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for event in events:
            self.wfile.write(b"%x\r\n%s\r\n" % (len(event), event))
        self.wfile.write(b"0\r\n\r\n")


def _last_user_text(body: Mapping[str, Any]) -> str:
    """The text of the last user message of a request, whatever else is wrong with it."""
    messages = body.get("messages")
    for message in reversed(messages if isinstance(messages, list) else []):
        if isinstance(message, dict) and message.get("role") == "user":
            content = message.get("content")
            return text_of(
                tuple(part for part in content if isinstance(part, dict))
                if isinstance(content, list)
                else str(content or "")
            )
    return ""
