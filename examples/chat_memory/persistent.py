"""A store of one's own that keeps chats in a database: three methods, here over SQLite.

The second service knows what the first was told. Run it with `python examples/chat_memory/persistent.py`.
"""

from __future__ import annotations

import asyncio
import json
import sqlite3
from typing import TYPE_CHECKING

from scripted import scripted_model

from memagent.sessions import ChatMemoryStore, ChatService, MessageWindowChatMemory
from memagent.sessions.message_json import from_json, to_json

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from memagent import Message


class SqliteChatMemoryStore(ChatMemoryStore):
    def __init__(self, path: str) -> None:
        self.database = sqlite3.connect(path, isolation_level=None)
        self.database.execute("CREATE TABLE IF NOT EXISTS chats (id TEXT PRIMARY KEY, messages TEXT)")

    async def get_messages(self, memory_id: Hashable) -> Sequence[Message]:
        row = self.database.execute("SELECT messages FROM chats WHERE id = ?", (str(memory_id),)).fetchone()
        return [from_json(each) for each in json.loads(row[0])] if row else []

    async def update_messages(self, memory_id: Hashable, messages: Sequence[Message]) -> None:
        values = (str(memory_id), json.dumps([to_json(each) for each in messages]))
        self.database.execute("INSERT OR REPLACE INTO chats VALUES (?, ?)", values)

    async def delete_messages(self, memory_id: Hashable) -> None:
        self.database.execute("DELETE FROM chats WHERE id = ?", (str(memory_id),))


async def main(path: str = "chat-memory.db") -> None:
    async with scripted_model() as model:
        for question in ("Tôi họ Nguyễn, hãy đặt một tên con gái thật hay", "Tên khác đi"):
            store = SqliteChatMemoryStore(path)  # a new one each time, as after a restart
            memory = MessageWindowChatMemory(max_messages=10, store=store)
            print(await ChatService(model, memory=memory).chat(question))
            print(f"--- {len(await memory.messages())} messages kept")
            store.database.close()


if __name__ == "__main__":
    asyncio.run(main())
