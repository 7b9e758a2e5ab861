# SPDX-FileCopyrightText: 2026 The tenon authors
# SPDX-License-Identifier: Apache-2.0
"""Engines, with events and with asyncio."""
import asyncio

import pytest
import tenon
from conftest import ANSWER

QUESTION = "Where does Mia live?"


@pytest.fixture
def engine(model):
    with model.engine(n_seq=4, n_ctx=1024, n_waiting=8) as one:
        yield one


def test_events(engine):
    requests = [engine.submit_chat(QUESTION, temperature=0) for _ in range(3)]
    cut = engine.submit("Once upon a time", max_tokens=3, temperature=0)
    assert engine.pending == 4
    texts, stops = {}, {}
    for event in engine.events():
        texts[event.request] = texts.get(event.request, "") + event.piece.text
        if event.last:
            stops[event.request] = event.piece.stop
    assert [texts[r] for r in requests] == [ANSWER] * 3
    assert stops == {**{r: "end" for r in requests}, cut: "limit"}
    assert engine.pending == 0 and engine.stats["n_generated"] > 12


def test_cancel(engine):
    request = engine.submit("Once upon a time", ignore_end=True)
    for event in engine.events():
        engine.cancel(request)
    assert event.piece.stop == "cancelled"


def test_refused(engine):
    with pytest.raises(tenon.Error) as caught:
        engine.submit("word " * 5000)
    assert caught.value.name == "TN_ERR_CONTEXT_FULL"
    with pytest.raises(tenon.Error) as caught:
        for _ in range(100):
            engine.submit("Once upon a time", ignore_end=True)
    assert caught.value.name == "TN_ERR_BUSY"


async def collected(pieces):
    return "".join([piece.text async for piece in pieces])


def test_asyncio(engine):
    async def main():
        streams = [engine.stream_chat(QUESTION, temperature=0) for _ in range(6)]
        texts = await asyncio.gather(*map(collected, streams))
        assert texts == [ANSWER] * 6
        one = await collected(engine.stream("Once upon a time", max_tokens=3))
        assert one
    asyncio.run(main())
    asyncio.run(main())  # in another loop


def test_asyncio_does_not_block(engine):
    """Other tasks run between the pieces."""
    async def main():
        ticks = 0

        async def tick():
            nonlocal ticks
            while True:
                ticks += 1
                await asyncio.sleep(0)
        task = asyncio.create_task(tick())
        seen = []
        async for _ in engine.stream("Once upon a time", max_tokens=20, ignore_end=True):
            seen.append(ticks)
        task.cancel()
        assert len(set(seen)) > 10
    asyncio.run(main())


def test_asyncio_leaving_early_cancels(engine):
    async def main():
        stream = engine.stream("Once upon a time", ignore_end=True)
        async for _ in stream:
            break
        await stream.aclose()
        task = asyncio.create_task(collected(engine.stream("Once upon a time", ignore_end=True)))
        await asyncio.sleep(0.05)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await collected(engine.stream_chat(QUESTION, temperature=0)) == ANSWER
    asyncio.run(main())
    for _ in engine.events():
        pass
    assert engine.pending == 0


def test_two_readers_are_refused(engine):
    async def main():
        stream = engine.stream("Once upon a time", max_tokens=50)
        await stream.__anext__()
        with pytest.raises(RuntimeError, match="reads this engine"):
            next(engine.events())
        await stream.aclose()
    asyncio.run(main())


def test_errors_reach_the_stream(engine):
    async def main():
        with pytest.raises(tenon.Error, match="grammar"):
            await collected(engine.stream("Once", grammar="root ::= ("))
    asyncio.run(main())


def test_close_with_requests(model):
    engine = model.engine(n_seq=2, n_ctx=512)
    engine.submit("Once upon a time", ignore_end=True)
    engine.close()
    with pytest.raises(ValueError, match="this Engine is closed"):
        engine.submit("x")
