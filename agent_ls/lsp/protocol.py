"""pygls' protocol with its defects put right (seen in pygls 2.1.1, each with a test in tests/lsp).

Every override says what it mends; one that a newer pygls makes needless can go.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
from collections.abc import Awaitable, Callable, Generator
from concurrent.futures import Future
from contextvars import ContextVar
from typing import Any

import attrs
from lsprotocol import types
from pygls.exceptions import (
    JsonRpcException,
    JsonRpcInternalError,
    JsonRpcInvalidParams,
    JsonRpcInvalidRequest,
    JsonRpcParseError,
    JsonRpcServerNotInitialized,
)
from pygls.protocol import LanguageServerProtocol, lsp_method

logger = logging.getLogger(__name__)

WORK_DONE_TOKEN: ContextVar[int | str | None] = ContextVar("work_done_token", default=None)
"""The progress token that the client made for the command at hand."""


class Protocol(LanguageServerProtocol):
    """Takes message bodies by `receive`; everything else is pygls'."""

    exited: Callable[[int], None]
    """Told the exit code when the client says `exit`."""
    _began = False

    # -- incoming

    def receive(self, body: bytes) -> None:
        """Handle one message. Never raises: what can't be read is answered or logged, as JSON-RPC says."""
        try:
            data = json.loads(body)
        except (ValueError, RecursionError) as error:
            self._refuse(None, JsonRpcParseError(f"no JSON: {error}"))
            return
        if not isinstance(data, dict) or data.get("jsonrpc") != "2.0":
            self._refuse(_id(data), JsonRpcInvalidRequest("no JSON-RPC 2.0 message"))
            return
        kind = self.get_message_type(data["method"]) if isinstance(data.get("method"), str) else None
        if kind is not None and "id" in data and "id" not in _fields(kind):
            self._refuse(
                _id(data), JsonRpcInvalidRequest(f"{data['method']} is a notification: it has no id")
            )
            return
        if "method" in data and "params" not in data:
            data["params"] = None  # may be left out; pygls then finds no message of that kind
        try:
            message = self.structure_message(data)
        except JsonRpcException as error:
            self._unreadable(data, error)
            return
        try:
            self.handle_message(message)
        except Exception as error:
            logger.exception("a message could not be handled")
            if "method" in data:
                self._refuse(_id(data), JsonRpcInternalError(f"{type(error).__name__}: {error}"))

    def _unreadable(self, data: dict[str, Any], error: JsonRpcException) -> None:
        """pygls drops a request whose parameters don't fit, and the client waits for ever."""
        if "method" in data:
            if "id" in data:
                self._refuse(_id(data), JsonRpcInvalidParams(f"the parameters of {data['method']} don't fit"))
            else:
                logger.warning("a notification %r was left out: its parameters don't fit", data["method"])
            return
        future = self._request_futures.pop(data.get("id", ""), None)
        if future is not None and not future.done():
            future.set_exception(error)

    def _refuse(self, id: int | str | None, error: JsonRpcException) -> None:
        if self.writer is None:
            return
        answer = {"jsonrpc": "2.0", "id": id, "error": {"code": error.code, "message": error.message}}
        self._send_data(answer)

    def handle_message(self, message: Any) -> None:
        """After `shutdown` a request is refused (pygls: no answer)."""
        if self._shutdown and getattr(message, "method", None) not in (None, types.EXIT):
            if getattr(message, "id", None) is not None:
                self._refuse(message.id, JsonRpcInvalidRequest("the server is shutting down"))
            return
        super().handle_message(message)

    def _handle_request(self, msg_id: int | str, method_name: str, params: Any) -> None:
        """Before `initialize`, requests are refused (pygls carries them out)."""
        if method_name == types.INITIALIZE:
            if self._began:
                self._refuse(msg_id, JsonRpcInvalidRequest("the server is initialized already"))
                return
            self._began = True
        elif not self._began:
            self._refuse(msg_id, JsonRpcServerNotInitialized("the server is not initialized"))
            return
        if method_name == types.WORKSPACE_EXECUTE_COMMAND:
            WORK_DONE_TOKEN.set(params.work_done_token)
        super()._handle_request(msg_id, method_name, params)

    def _handle_notification(self, method_name: str, params: Any) -> None:
        """Before `initialize`, notifications are dropped, but for `exit`."""
        if not self._began and method_name != types.EXIT:
            return
        super()._handle_notification(method_name, params)

    def _handle_cancel_notification(self, msg_id: int | str) -> None:
        """A future is popped by its own end (pygls pops it here, and leaves nothing to cancel twice)."""
        future = self._request_futures.get(msg_id)
        if future is not None:
            future.cancel()

    def _handle_response(self, msg_id: Any, result: Any = None, error: Any = None) -> None:
        """A reply that comes after its request was given up is dropped (pygls: InvalidStateError)."""
        future = self._request_futures.get(msg_id)
        if future is not None and future.done():
            self._request_futures.pop(msg_id, None)
            return
        super()._handle_response(msg_id, result, error)

    def _execute_handler(
        self,
        msg_id: int | str,
        handler: Callable[..., Any],
        callback: Callable[[Future[Any]], None],
        args: tuple[Any, ...] | None = None,
        kwargs: dict[str, Any] | None = None,
    ) -> None:
        """A cancelled command ends (pygls answers, and lets its coroutine run on), and finished handlers are
        forgotten (pygls keeps one entry for each asynchronous notification)."""
        super()._execute_handler(msg_id, handler, callback, args, kwargs)
        future = self._request_futures.get(msg_id)
        if future is None:
            return

        def forget(_: Future[Any]) -> None:
            if self._request_futures.get(msg_id) is future:
                del self._request_futures[msg_id]

        future.add_done_callback(forget)
        outer_id = self.msg_id
        if outer_id is not None and outer_id != msg_id:
            outer = self._request_futures.get(outer_id)
            if outer is not None:
                outer.add_done_callback(lambda ended: ended.cancelled() and future.cancel())

    # -- lifecycle

    @lsp_method(types.SHUTDOWN)
    def lsp_shutdown(self, *args: Any) -> Generator[Any, Any, None]:
        """With requests in flight, pygls fails with "dictionary changed size during iteration"."""
        handler = self.fm.features.get(types.SHUTDOWN)
        if handler is not None:
            yield handler, args, None
        for id, future in list(self._request_futures.items()):
            if id != self.msg_id and not future.done():
                future.cancel()
        self._shutdown = True

    @lsp_method(types.EXIT)
    def lsp_exit(self, *args: Any) -> Generator[Any, Any, None]:
        """0 only after `shutdown` (pygls raises SystemExit in the middle of a callback)."""
        self.exited(0 if self._shutdown else 1)
        return
        yield

    # -- documents are kept in `documents`: pygls splits lines at form feeds and other marks that are no line
    # ends in the protocol, and takes two names of one file for two files

    @lsp_method(types.TEXT_DOCUMENT_DID_OPEN)
    def lsp_text_document__did_open(self, params: types.DidOpenTextDocumentParams) -> Any:
        yield self.fm.features[types.TEXT_DOCUMENT_DID_OPEN], (params,), None

    @lsp_method(types.TEXT_DOCUMENT_DID_CHANGE)
    def lsp_text_document__did_change(self, params: types.DidChangeTextDocumentParams) -> Any:
        yield self.fm.features[types.TEXT_DOCUMENT_DID_CHANGE], (params,), None

    @lsp_method(types.TEXT_DOCUMENT_DID_CLOSE)
    def lsp_text_document__did_close(self, params: types.DidCloseTextDocumentParams) -> Any:
        yield self.fm.features[types.TEXT_DOCUMENT_DID_CLOSE], (params,), None

    # -- outgoing

    def _send_data(self, data: Any) -> None:
        """The writer never fails and never blocks, so that reporting an error can't cause the next one."""
        if not data or self.writer is None:
            return
        try:
            body = json.dumps(data, default=self._serialize_message)
        except (TypeError, ValueError, AttributeError):
            logger.exception("a message could not be written")
            return
        self.writer.write(body.encode("utf-8", "surrogatepass"))


def _fields(kind: type[Any]) -> frozenset[str]:
    return frozenset(attribute.name for attribute in attrs.fields(kind))


def _id(data: Any) -> int | str | None:
    found = data.get("id") if isinstance(data, dict) else None
    return found if isinstance(found, (int, str)) and not isinstance(found, bool) else None


async def answer(future: Awaitable[Any], timeout: float) -> Any:
    """A client's answer to our request; None when it gives none in time, or an error."""
    with contextlib.suppress(Exception):
        return await asyncio.wait_for(future, timeout)
    return None
