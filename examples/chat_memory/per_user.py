"""One memory for each user: nobody is answered out of another one's chat.

Run it with `python examples/chat_memory/per_user.py`.
"""

from __future__ import annotations

import asyncio

from scripted import scripted_model

from memagent.sessions import ChatMemoryProvider, ChatService, MessageWindowChatMemory


async def main() -> None:
    async with scripted_model() as model:
        provider = ChatMemoryProvider(lambda user: MessageWindowChatMemory(id=user, max_messages=10))
        name_master = ChatService(model, provider=provider)
        print(await name_master.chat("Tôi họ Nguyễn, hãy đặt một tên con gái thật hay", memory_id=1))
        print("---")
        print(await name_master.chat("Tôi họ Trần, hãy đặt một tên con trai thật hay", memory_id=2))
        print("---")
        print(await name_master.chat("Tên khác đi", memory_id=1))


if __name__ == "__main__":
    asyncio.run(main())
