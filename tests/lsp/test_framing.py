"""The base protocol's framing, with streams cut anywhere."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_ls.lsp.framing import MAX_BODY, Framer, FramingError, frame

HEADERS = ("Content-Length: {}", "content-length:{}", "CONTENT-LENGTH :  {} ")


@given(
    st.lists(st.tuples(st.binary(max_size=60), st.sampled_from(HEADERS), st.booleans(), st.booleans())),
    st.lists(st.integers(1, 40), min_size=1),
)
def test_bodies_come_out_however_the_stream_is_cut(
    messages: list[tuple[bytes, str, bool, bool]], cuts: list[int]
) -> None:
    stream = b""
    for body, header, bare, typed in messages:
        lines = [header.format(len(body))]
        if typed:
            lines.append("Content-Type: application/vscode-jsonrpc; charset=utf-8")
        end = "\n" if bare else "\r\n"
        stream += (end.join(lines) + end + end).encode() + body
    framer, found, at = Framer(), [], 0
    while at < len(stream):
        size = cuts[at % len(cuts)]
        found += framer.feed(stream[at : at + size])
        at += size
    assert found == [body for body, *_ in messages]


@given(st.binary())
def test_what_is_written_is_read_back(body: bytes) -> None:
    assert list(Framer().feed(frame(body))) == [body]


def test_stray_lines_between_messages_are_passed_over() -> None:
    stream = b"warning: hello\n\n" + frame(b"{}") + b"noise\r\n" + frame(b"[]")
    assert list(Framer().feed(stream)) == [b"{}", b"[]"]


@pytest.mark.parametrize("stream", [b"x" * 70_000, b"Content-Length: %d\r\n" % (MAX_BODY + 1)])
def test_a_stream_that_has_no_end_is_an_error(stream: bytes) -> None:
    with pytest.raises(FramingError):
        list(Framer().feed(stream))
