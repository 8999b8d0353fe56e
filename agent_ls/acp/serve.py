"""`agent-ls acp`: the agent on standard input and output."""

from __future__ import annotations

import asyncio
import os
import threading

from agent_ls.lsp.stdio import claim_stdio

_LIMIT = 64 * 1024 * 1024
_PATIENCE_S = 3.0


def serve() -> int:
    """Serve one client until it goes. Raises UsageError when the extra is not installed."""
    from agent_ls.errors import UsageError

    try:
        import acp
    except ImportError as error:
        raise UsageError(
            "the Agent Client Protocol is not installed", "pip install 'agent-ls[acp]'"
        ) from error
    from agent_ls.acp.agent import Agent

    read, write = claim_stdio()

    async def main() -> None:
        loop = asyncio.get_running_loop()
        reader = asyncio.StreamReader(limit=_LIMIT)

        def feed() -> None:
            while data := os.read(read, 1 << 16):
                loop.call_soon_threadsafe(reader.feed_data, data)
            loop.call_soon_threadsafe(reader.feed_eof)

        threading.Thread(target=feed, name="acp-reader", daemon=True).start()
        transport, protocol = await loop.connect_write_pipe(
            asyncio.streams.FlowControlMixin, os.fdopen(write, "wb", buffering=0)
        )
        writer = asyncio.StreamWriter(transport, protocol, None, loop)
        agent = Agent()
        try:
            await acp.run_agent(agent, writer, reader)  # type: ignore[arg-type]  # the rest is optional
        finally:
            stopping = threading.Thread(target=agent.runs.stop, daemon=True)
            stopping.start()
            await asyncio.to_thread(stopping.join, _PATIENCE_S)

    asyncio.run(main())
    os._exit(0)  # threads of stuck runs must not keep the process
