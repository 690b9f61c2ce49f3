"""A name master that remembers what it was asked: one memory, the ten newest messages.

Run it with `python examples/chat_memory/name_master.py`; it needs no key and no network.
"""

from __future__ import annotations

import asyncio

from scripted import scripted_model

from memagent.sessions import ChatService, MessageWindowChatMemory


async def main() -> None:
    async with scripted_model() as model:
        name_master = ChatService(model, memory=MessageWindowChatMemory(max_messages=10))
        print(await name_master.chat("Tôi họ Nguyễn, hãy đặt một tên con gái thật hay"))
        print("---")
        print(await name_master.chat("Tên khác đi"))


if __name__ == "__main__":
    asyncio.run(main())
