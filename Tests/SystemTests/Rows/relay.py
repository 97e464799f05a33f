"""A relay of TCP connections that simulates a bad network: it delays and limits bytes, and cuts connections.

Kernels without `netem` cannot do that themselves. Arguments: the port of the server, the seconds by which bytes are
delayed in each direction, the bytes per second of each connection and direction, the fraction of connections that are
cut, and a seed. A connection is cut at a random time within two seconds, with a reset. The relay prints `ready` and its
own port, and at its end the number of cut connections.
"""

import asyncio
import os
import random
import signal
import socket
import struct
import sys

server, delay, rate, cut = int(sys.argv[1]), float(sys.argv[2]), float(sys.argv[3]), float(sys.argv[4])
seed = sys.argv[5]
chance = random.Random(seed)
cuts = 0


def reset(writer):
    """Ends a connection with a reset (RST) instead of a FIN."""
    raw = writer.get_extra_info("socket")
    if raw is not None:
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


async def receive(reader, queue):
    """Reads at the rate, and queues each piece with the time at which it is to be sent."""
    loop = asyncio.get_running_loop()
    try:
        while piece := await reader.read(16384):
            await asyncio.sleep(len(piece) / rate)
            await queue.put((loop.time() + delay, piece))
    except OSError:
        pass
    await queue.put((loop.time() + delay, b""))


async def send(queue, writer):
    loop = asyncio.get_running_loop()
    while True:
        due, piece = await queue.get()
        await asyncio.sleep(max(0, due - loop.time()))
        if not piece:
            writer.close()
            return
        try:
            writer.write(piece)
            await writer.drain()
        except OSError:
            return


async def connected(reader, writer):
    global cuts
    end = chance.uniform(0, 2) if chance.random() < cut else None
    try:
        back, forth = await asyncio.open_connection("127.0.0.1", server)
    except OSError:
        return reset(writer)
    tasks = []
    for source, target in ((reader, forth), (back, writer)):
        # As much as a network has in transit.
        queue = asyncio.Queue(64)
        tasks += [asyncio.create_task(receive(source, queue)), asyncio.create_task(send(queue, target))]
    done, rest = await asyncio.wait(tasks, timeout=end)
    if rest:
        cuts += 1
        for task in rest:
            task.cancel()
        reset(writer)
        reset(forth)
    else:
        writer.close()
        forth.close()


async def main():
    listener = await asyncio.start_server(connected, "127.0.0.1", 0)
    print("ready", listener.sockets[0].getsockname()[1], flush=True)
    ended = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, ended.set)
    await ended.wait()
    print(cuts, flush=True)
    os._exit(0)


asyncio.run(main())
