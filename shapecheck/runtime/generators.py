"""Checked generators: every item is judged where it crosses, send and throw reach the inner one."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Generator

Check = Callable[[object], None] | None


def drive(
    inner: Generator[object, object, object], check_item: Check, check_result: Check
) -> Generator[object, object, object]:
    """Yield what `inner` yields, each item checked before it is handed out, and so the result."""
    try:
        item = next(inner)
        while True:
            if check_item is not None:
                check_item(item)
            try:
                sent = yield item
            except GeneratorExit:
                raise
            except BaseException as thrown:
                item = inner.throw(thrown)
            else:
                item = inner.send(sent)
    except StopIteration as stop:
        if check_result is not None:
            check_result(stop.value)
        return stop.value
    finally:
        inner.close()


async def drive_async(
    inner: AsyncGenerator[object, object], check_item: Check, check_result: Check
) -> AsyncGenerator[object, object]:
    """Yield what `inner` yields, each item checked before it is handed out."""
    assert check_result is None, "an async generator returns nothing"
    try:
        item = await anext(inner)
        while True:
            if check_item is not None:
                check_item(item)
            try:
                sent = yield item
            except GeneratorExit:
                raise
            except BaseException as thrown:
                item = await inner.athrow(thrown)
            else:
                item = await inner.asend(sent)
    except StopAsyncIteration:
        return
    finally:
        await inner.aclose()
