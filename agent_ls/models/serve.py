"""A local model behind llama.cpp's own HTTP server, for other programs on this machine."""

from __future__ import annotations

from collections.abc import Callable

from agent_ls.cancel import CancelToken
from agent_ls.errors import UsageError
from agent_ls.models import catalog
from agent_ls.models._http import is_loopback
from agent_ls.models.local import DEFAULT_WINDOW, default_threads, require_llama, start_server


def serve(
    name: str,
    *,
    host: str = "127.0.0.1",
    port: int = 8080,
    window: int | None = None,
    on_ready: Callable[[str], None],
    cancel: CancelToken,
) -> None:
    """Serve the installed model `name` in the chat-completions format until cancelled.

    `host` is a loopback address, as nothing asks for a key; `port` 0 takes a free one; `window` is in
    tokens. `on_ready` gets the base URL (".../v1") once it answers. Raises UsageError (unknown or not
    installed, port out of range, another host), ProviderError (cannot start: the port
    is taken, the file can't be loaded).
    """
    if not 0 <= port <= 65535:
        raise UsageError(f"port {port} is not between 0 and 65535")
    if not is_loopback(host):
        raise UsageError(
            f"{host} is not a loopback address: whoever reaches it could use the model without a key",
            "Serve on 127.0.0.1 and put a proxy of your choice in front.",
        )
    model = catalog.find(name)
    require_llama(f"local:{model.name}")
    server = start_server(
        catalog.installed_file(name),
        window or DEFAULT_WINDOW,
        default_threads(),
        host=host,
        port=port,
        alias=model.name,
    )
    on_ready(f"{server.listening_address}/v1")
    while not cancel.wait(3600):
        pass
