"""One client's connection to the proxy, and the proxy's connection to the server for it."""

from __future__ import annotations

import asyncio
import socket
import ssl
import struct
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine
from contextlib import aclosing, suppress
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final, Protocol

from blastyard.testing.proxy_fault import (
    Delay,
    Fault,
    HalfOpen,
    Log,
    LostAnswer,
    LostRequest,
    Plan,
    Record,
    Reset,
    Rule,
    Said,
    Truncated,
)
from blastyard.testing.proxy_message import (
    LAST_CHUNK,
    Broken,
    Head,
    framed,
    has_body,
    read_body,
    read_head,
)

_ABORT: Final = struct.pack("ii", 1, 0)
"""``SO_LINGER`` with no time to linger: closing resets the connection."""


class Network(Protocol):
    """What the sessions of one proxy share. Used in its event loop only."""

    plan: Plan
    log: Log
    flowing: asyncio.Event
    """Cleared while nothing is to be passed on, in either direction."""

    def connect(self) -> Awaitable[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
        """A new connection to the server. Raises ``OSError``."""
        ...


class ClientSide(asyncio.StreamReaderProtocol):
    """The client's connection; ``begin`` is called when it stands. Knows when the client has gone.

    A client that shuts down its sending side only is taken for gone: no HTTP client does that.
    """

    def __init__(
        self,
        reader: asyncio.StreamReader,
        begin: Callable[[ClientSide, asyncio.StreamWriter], None],
    ) -> None:
        super().__init__(reader, lambda _, writer: begin(self, writer))
        self.reader = reader
        self.gone = asyncio.Event()

    def eof_received(self) -> bool:
        super().eof_received()
        self.gone.set()
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self.gone.set()


class _Ended(Exception):
    """The client's connection cannot go on."""


@dataclass(frozen=True, slots=True)
class _Exchange:
    record: Record
    rule: Rule | None

    @property
    def fault(self) -> Fault | None:
        return self.record.fault


class Session:
    """Serves one client until either side ends."""

    def __init__(self, network: Network, side: ClientSide, writer: asyncio.StreamWriter) -> None:
        self._network = network
        self._side = side
        self._client = writer
        self._socket = writer.get_extra_info("socket")
        self._server: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
        # what was drained must be on its way, or an abort would take it back
        writer.transport.set_write_buffer_limits(high=1)

    async def serve(self) -> None:
        """One request after another."""
        try:
            while (head := await read_head(self._side.reader)) is not None:
                await self._serve_one(head)
        except (_Ended, Broken, OSError, ssl.SSLError):
            self.abort()
        finally:
            self._client.close()
            self._drop_server()

    def abort(self) -> None:
        """Reset the client's connection."""
        with suppress(OSError):
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _ABORT)
        self._client.transport.abort()

    def _drop_server(self) -> None:
        if self._server is not None:
            self._server[1].transport.abort()
            self._server = None

    async def _serve_one(self, head: Head) -> None:
        body = b"".join([p async for p in read_body(self._side.reader, head, until_end=False)])
        network, (verb, target, _) = self._network, head.first
        rule = network.plan.choose(verb, target)
        fault = rule.fault if rule else None
        record = network.log.begin(verb, target, head.get("user-agent"), fault)
        try:
            await self._exchange(_Exchange(record, rule), head, body)
        finally:
            network.log.end(record)

    async def _exchange(self, exchange: _Exchange, head: Head, body: bytes) -> None:
        await self._network.flowing.wait()
        match exchange.fault:
            case LostRequest():
                raise _Ended
            case Said() as said:
                return await self._say(exchange, said)
            case Delay(answer=False, at_most=at_most):
                await self._released(exchange, at_most)
        answer = await self._forward(head, body)
        match exchange.fault:
            case LostAnswer():
                await self._swallow(exchange, answer)
                raise _Ended
            case Delay(answer=True, at_most=at_most):
                await self._unless_gone(self._released(exchange, at_most))
        await self._network.flowing.wait()
        return await self._unless_gone(self._pass_on(exchange, answer))

    async def _say(self, exchange: _Exchange, said: Said) -> None:
        fields = [("Content-Type", said.content_type), *said.fields]
        if said.retry_after is not None:
            fields.append(("Retry-After", str(said.retry_after)))
        head = Head(("HTTP/1.1", str(said.status), HTTPStatus(said.status).phrase), tuple(fields))
        exchange.record.status = said.status
        await self._send(head.encoded(len(said.body)) + said.body)

    async def _forward(self, head: Head, body: bytes) -> Head:
        if self._server is not None and self._server[0].at_eof():
            self._drop_server()
        if self._server is None:
            self._server = await self._network.connect()
        reader, writer = self._server
        writer.write(head.encoded(len(body)) + body)
        await writer.drain()
        answer = await read_head(reader)
        if answer is None:
            raise Broken("the server ended without an answer")
        if answer.status == HTTPStatus.SWITCHING_PROTOCOLS:
            raise Broken("an upgraded connection is not passed on")
        return answer

    def _pieces(self, exchange: _Exchange, answer: Head) -> AsyncGenerator[bytes, None]:
        assert self._server is not None
        if not has_body(exchange.record.verb, answer):
            answer = Head(answer.first, (("Content-Length", "0"),))
        return read_body(self._server[0], answer, until_end=True)

    async def _swallow(self, exchange: _Exchange, answer: Head) -> None:
        """Take the whole answer, so that it is sure that the server has done its work."""
        if "watch=" not in exchange.record.target:
            async for _ in self._pieces(exchange, answer):
                pass

    async def _pass_on(self, exchange: _Exchange, answer: Head) -> None:
        fault = exchange.fault
        if isinstance(fault, Truncated):
            return await self._shorten(exchange, answer, fault)
        if has_body(exchange.record.verb, answer) and not answer.get("content-length"):
            answer = answer.chunked()
        exchange.record.status = answer.status
        await self._send(answer.encoded())
        limit = _Limit(fault)
        async with aclosing(self._pieces(exchange, answer)) as pieces:
            while not limit.is_reached and (piece := await anext(pieces, b"")):
                await self._network.flowing.wait()
                if part := limit.part(piece):
                    await self._send(framed(part, chunked=answer.is_chunked))
        if isinstance(fault, HalfOpen) and limit.is_reached:
            await self._released(exchange, None)
        if limit.is_reached:
            raise _Ended
        if answer.is_chunked:
            await self._send(LAST_CHUNK)
        return None

    async def _shorten(self, exchange: _Exchange, answer: Head, fault: Truncated) -> None:
        body = b"".join([piece async for piece in self._pieces(exchange, answer)])
        kept = body[: fault.keep]
        told = len(kept) if fault.honest else len(body)
        exchange.record.status = answer.status
        await self._send(answer.encoded(told) + kept)
        if told > len(kept):
            raise _Ended

    async def _send(self, data: bytes) -> None:
        self._client.write(data)
        await self._client.drain()

    async def _released(self, exchange: _Exchange, at_most: float | None) -> None:
        """Until the rule is released, or so many seconds have passed."""
        loop = asyncio.get_running_loop()
        released = asyncio.Event()

        def tell() -> None:
            with suppress(RuntimeError):  # the proxy has ended meanwhile
                loop.call_soon_threadsafe(released.set)

        if exchange.rule is not None:
            exchange.rule.when_released(tell)
        with suppress(TimeoutError):
            await asyncio.wait_for(released.wait(), at_most)

    async def _unless_gone(self, doing: Coroutine[object, object, None]) -> None:
        """Do it, unless the client goes before it is done."""
        work = asyncio.ensure_future(doing)
        gone = asyncio.ensure_future(self._side.gone.wait())
        try:
            await asyncio.wait({work, gone}, return_when=asyncio.FIRST_COMPLETED)
            if not work.done():
                raise _Ended
            work.result()
        finally:
            for task in (work, gone):
                task.cancel()
            await asyncio.gather(work, gone, return_exceptions=True)


class _Limit:
    """How much of a body may pass."""

    def __init__(self, fault: Fault | None) -> None:
        self._bytes = fault.after if isinstance(fault, Reset) else -1
        self._lines = fault.after if isinstance(fault, HalfOpen) else -1

    @property
    def is_reached(self) -> bool:
        return self._bytes == 0 or self._lines == 0

    def part(self, piece: bytes) -> bytes:
        """What of this piece may pass."""
        if self._bytes > 0:
            piece = piece[: self._bytes]
            self._bytes -= len(piece)
        elif self._lines > 0:
            lines = piece.splitlines(keepends=True)[: self._lines]
            self._lines -= sum(line.endswith(b"\n") for line in lines)
            piece = b"".join(lines)
        return piece
