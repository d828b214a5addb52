"""A chat endpoint that answers every request after a fixed time: python chat_stub.py SECONDS

Writes its port on the first line of its output, and ends when its input does. It imports nothing of the
library, so that it starts at once; one event loop serves all connections.
"""

import asyncio
import json
import sys
import threading

_REPLY = {
    "id": "c",
    "object": "chat.completion",
    "created": 0,
    "model": "stub",
    "choices": [
        {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": '{"triples": []}'}}
    ],
    "usage": {"prompt_tokens": 100, "completion_tokens": 5, "total_tokens": 105},
}


async def serve(seconds: float) -> None:
    body = json.dumps(_REPLY).encode()
    head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    answer = head.encode() + body

    async def answer_all(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower().split("\r\n")
                length = next(
                    (line for line in lines if line.startswith("content-length:")), "content-length: 0"
                )
                await reader.readexactly(int(length.split(":")[1]))
                await asyncio.sleep(seconds)
                writer.write(answer)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    server = await asyncio.start_server(answer_all, "127.0.0.1", 0, backlog=1024)
    sys.stdout.write(f"{server.sockets[0].getsockname()[1]}\n")
    sys.stdout.flush()
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()

    def wait_for_the_end() -> None:
        sys.stdin.read()
        loop.call_soon_threadsafe(ended.set)

    threading.Thread(target=wait_for_the_end, daemon=True).start()
    await ended.wait()


if __name__ == "__main__":
    asyncio.run(serve(float(sys.argv[1])))
