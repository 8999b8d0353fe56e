"""One model call with its events: the same for every strategy."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

from attrs import evolve

from agent_ls.agent.session import Session
from agent_ls.agent.stops import LimitReached
from agent_ls.masking import SecretMask
from agent_ls.models.protocol import Backend, ModelEvent, Reply, Request, Retrying, TextDelta, gather
from agent_ls.models.replay import canonical, digest, reply_data
from agent_ls.workspace.secret_files import mask_for


def mask_of(session: Session) -> SecretMask:
    """What hides secrets from the session's model."""
    return mask_for(session.worktree.path, session.repo.root, [session.settings.api_key or ""])


def call_model(session: Session, backend: Backend, request: Request) -> Reply:
    """Check the limits, hide secrets in the prompt, call, record.

    Raises LimitReached, ProviderError, ContextTooLong, Cancelled.
    """
    session.cancel.raise_if_cancelled()
    session.meter.check()
    mask = mask_of(session)
    request = evolve(request, messages=[evolve(m, content=mask.hide(m.content)) for m in request.messages])
    meter = session.meter
    meter.steps += 1
    meter.model_calls += 1
    number = meter.model_calls
    record: dict[str, Any] = canonical(request)
    session.log.append("model_call", n=number, digest=digest(request), **record)
    started = time.monotonic()
    reply = gather(_watch(session, backend.stream(request, session.cancel)))
    meter.usage = meter.usage + reply.usage
    session.log.append(
        "model_reply", n=number, **reply_data(reply), seconds=round(time.monotonic() - started, 2)
    )
    return reply


def _watch(session: Session, events: Iterator[ModelEvent]) -> Iterator[ModelEvent]:
    """The events as they come. Raises LimitReached when the time is up, or would be after a wait."""
    for event in events:
        session.cancel.raise_if_cancelled()
        if isinstance(event, Retrying):
            session.log.append(
                "model_retry", reason=event.reason, attempt=event.attempt, wait_s=round(event.wait_s, 1)
            )
            if event.wait_s >= session.meter.remaining_s():
                raise LimitReached(
                    "timeout",
                    f"the model's server fails ({event.reason}), and the time limit of"
                    f" {session.settings.limits.timeout:g} s leaves no room for another attempt",
                )
        elif isinstance(event, TextDelta):
            session.meter.check_time()
            session.delta(event.text)
        yield event
