"""The loop of the `tools` strategy: the model drives, the judge decides, limits and detector stop it."""

from __future__ import annotations

import json
from collections.abc import Sequence

from attrs import evolve

from agent_ls.agent.calls import call_model
from agent_ls.agent.context import Conversation, Section, cut, fit, note_sections
from agent_ls.agent.judge import Judge
from agent_ls.agent.judgement import first_line
from agent_ls.agent.reading import to_read
from agent_ls.agent.session import Session
from agent_ls.agent.toolcontext import LoopContext
from agent_ls.errors import ContextTooLong
from agent_ls.models.protocol import Backend, Message, Reply, Request
from agent_ls.prompts import render
from agent_ls.toolbox.registry import Toolbox

MAX_OUTPUT_TOKENS = 8192
MAX_SAID = 40_000
"""Characters of an answer's text that stay in the conversation: more would crowd out the task."""
MAX_CALLS = 32
"""Calls of one answer that are carried out; a model that asks for more has not seen what they show."""


def drive(session: Session, judge: Judge, backend: Backend, toolbox: Toolbox) -> None:
    """Run turns until something raises: a Stop with the verdict, or an error."""
    context = LoopContext(session, judge)
    talk = start(session, judge, backend)
    while True:
        reply = next_reply(session, backend, toolbox, talk)
        dropped = len(reply.tool_calls) - MAX_CALLS
        reply = evolve(reply, tool_calls=reply.tool_calls[:MAX_CALLS])
        said = cut(reply.text, MAX_SAID, "it was too long to be kept")
        talk.history.append(Message("assistant", said, tool_calls=reply.tool_calls))
        context.idle = 0 if reply.tool_calls else context.idle
        for call in reply.tool_calls:
            session.cancel.raise_if_cancelled()
            session.meter.check_time()
            session.meter.tool_calls += 1
            session.log.append("tool_call", id=call.id, name=call.name, arguments=dict(call.arguments))
            output = toolbox.run(context, call)
            if call is reply.tool_calls[-1] and context.edited:
                output = evolve(output, text=output.text + "\n\n" + context.judge_edit())
            output = evolve(output, text=context.clean(output.text))
            session.log.append(
                "observation", id=call.id, name=call.name, text=output.text, is_error=output.is_error
            )
            talk.history.append(Message("tool", output.text, tool_call_id=call.id, is_error=output.is_error))
            session.progress.called(call.name, call.arguments, output.text)
        if dropped > 0:
            talk.history.append(Message("user", render("too_many_calls", dropped=dropped, cap=MAX_CALLS)))
        if not reply.tool_calls:
            talk.history.append(Message("user", context.no_call(reply)))


def next_reply(session: Session, backend: Backend, toolbox: Toolbox, talk: Conversation) -> Reply:
    """Render and call; a prompt that the provider finds too long is tried once more, smaller."""
    schemas = toolbox.schemas()
    extra = backend.count_tokens(json.dumps([dict(s.parameters) | {"d": s.description} for s in schemas]))
    old = talk.overflow(extra)
    if old:
        talk.replace_oldest(old, summarise(session, backend, talk, old))
    request = Request(
        messages=talk.assemble(extra),
        tools=schemas,
        temperature=session.settings.temperature,
        max_tokens=min(MAX_OUTPUT_TOKENS, talk.reserve),
        seed=session.settings.seed or None,
    )
    try:
        return call_model(session, backend, request)
    except ContextTooLong:
        session.note("the provider says the prompt is too long; one smaller try", "warning")
        return call_model(session, backend, evolve(request, messages=talk.assemble(extra, shrink=0.6)))


def summarise(session: Session, backend: Backend, talk: Conversation, old: Sequence[Message]) -> str:
    """The model's own notes on its oldest turns; the last resort, after shortening."""
    said = "\n\n".join(f"{m.role}: {cut(m.content, 1500, 'shortened')}" for m in old)
    room = talk.budget(0) // 2
    prompt = render("summarise", project=session.worktree.path, turns=cut(said, room * 2, "shortened"))
    reply = call_model(session, backend, Request(messages=[Message("user", prompt)], max_tokens=800))
    return render("summarised", project=session.worktree.path, notes=reply.text.strip())


def start(session: Session, judge: Judge, backend: Backend) -> Conversation:
    """The stable prefix: instructions, notes and named files, the task, the failing tests."""
    window = session.settings.context_window or backend.capabilities.window
    reserve = min(MAX_OUTPUT_TOKENS, window // 4)
    root = session.worktree.path
    baseline = session.baseline
    assert baseline is not None
    failing = [(id, first_line(baseline.by_id()[id])) for id in judge.to_fix]
    system = render("system", project=root, settings=session.settings)
    task = render(
        "task",
        project=root,
        task=session.task,
        failing=failing[:20],
        more=max(0, len(failing) - 20),
        counts=baseline.counts(),
        suspects=session.suspects[:5],
        reading=to_read(session, judge),
        tests_policy=session.settings.tests,
    )
    sections = fit(
        [
            Section("instructions", system, 0, floor=True),
            *note_sections(session.workspace, session.settings.include, session.log),
            Section("task", task, 0, floor=True),
        ],
        (window - reserve) // 2,
        backend.count_tokens,
        session.log,
        window,
    )
    instructions = sections[0].text
    user = "\n\n".join(section.text for section in sections[1:])
    return Conversation(
        prefix=(Message("system", instructions, cache=True), Message("user", user, cache=True)),
        count=backend.count_tokens,
        window=window,
        reserve=reserve,
        log=session.log,
    )
