"""A WHIP publisher on aiortc whose cadence is under control: frames per second, a microphone that fails, no goodbye.

Prints one JSON object a line. SIGKILL leaves nothing on the wire; SIGTERM closes the connection and sends DELETE.
"""

import argparse
import asyncio
import fractions
import json
import math
import signal
import struct
import sys
import time

import aiohttp
import aioice.ice
import av
from aiortc import MediaStreamTrack, RTCConfiguration, RTCPeerConnection, RTCRtpSender, RTCSessionDescription

STARTED = time.monotonic()


def say(event, **facts):
    print(json.dumps({"event": event, "t": round(time.monotonic() - STARTED, 3), **facts}), flush=True)


class Picture(MediaStreamTrack):
    """Frames at their due time; the colour changes slowly so that the encoder always has something to say."""

    kind = "video"

    def __init__(self, fps, size):
        super().__init__()
        self.fps = fps
        self.width, self.height = (int(side) for side in size.split("x"))
        self.number = 0
        self.start = None

    async def recv(self):
        if self.start is None:
            self.start = time.monotonic()
        due = self.start + self.number / self.fps
        await asyncio.sleep(max(0.0, due - time.monotonic()))
        frame = av.VideoFrame(self.width, self.height, "yuv420p")
        luma = 40 + (self.number * 7) % 160
        for plane, value in zip(frame.planes, (luma, 110, 140)):
            plane.update(bytes([value]) * plane.buffer_size)
        frame.pts = int(self.number / self.fps * 90000)
        frame.time_base = fractions.Fraction(1, 90000)
        self.number += 1
        return frame


class Tone(MediaStreamTrack):
    """A tone of 500 Hz, ten whole waves in each packet of 20 ms; after `seconds` it falls silent for good and not one packet more comes."""

    kind = "audio"
    SAMPLES = 960
    RATE = 48000
    WAVES = b"".join(
        struct.pack("<hh", value, value)
        for value in (int(6000 * math.sin(2 * math.pi * i / 96)) for i in range(960))
    )

    def __init__(self, seconds):
        super().__init__()
        self.seconds = seconds
        self.number = 0
        self.start = None

    async def recv(self):
        if self.start is None:
            self.start = time.monotonic()
        at = self.number * self.SAMPLES / self.RATE
        if at >= self.seconds:
            say("muted")
            await asyncio.Event().wait()
        await asyncio.sleep(max(0.0, self.start + at - time.monotonic()))
        frame = av.AudioFrame(format="s16", layout="stereo", samples=self.SAMPLES)
        frame.planes[0].update(self.WAVES)
        frame.pts = self.number * self.SAMPLES
        frame.sample_rate = self.RATE
        frame.time_base = fractions.Fraction(1, self.RATE)
        self.number += 1
        return frame


def prefer(transceiver, kind, codec):
    wanted = f"{kind}/{codec}".lower()
    codecs = [c for c in RTCRtpSender.getCapabilities(kind).codecs if c.mimeType.lower() == wanted]
    transceiver.setCodecPreferences(codecs)


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("--url", required=True)
    parser.add_argument("--token")
    parser.add_argument("--video", default="30", help="frames per second, or none")
    parser.add_argument("--size", default="320x240")
    parser.add_argument("--audio", default="on", help="on, none, or the seconds after which the microphone fails")
    parser.add_argument("--bind", default="127.0.0.1", help="the address ICE uses")
    parser.add_argument("--wait", action="store_true", help="make the offer, then wait for a line before the POST")
    return parser.parse_args()


async def line_from_stdin():
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.readline)


async def main():
    options = arguments()
    # aioice leaves loopback out; a test wants nothing else.
    aioice.ice.get_host_addresses = lambda use_ipv4, use_ipv6: [options.bind]

    pc = RTCPeerConnection(RTCConfiguration(iceServers=[]))
    done = asyncio.Event()

    if options.audio != "none":
        seconds = math.inf if options.audio == "on" else float(options.audio)
        prefer(pc.addTransceiver(Tone(seconds), direction="sendonly"), "audio", "opus")
    if options.video != "none":
        prefer(pc.addTransceiver(Picture(float(options.video), options.size), direction="sendonly"), "video", "h264")

    @pc.on("connectionstatechange")
    async def changed():
        say("connected" if pc.connectionState == "connected" else "state", state=pc.connectionState)

    await pc.setLocalDescription(await pc.createOffer())

    transport = pc.getSenders()[0].transport

    @transport.on("statechange")
    async def dtls():
        say("dtls", state=transport.state)

    say("ready")
    if options.wait:
        await line_from_stdin()

    headers = {"Content-Type": "application/sdp"}
    if options.token:
        headers["Authorization"] = f"Bearer {options.token}"
    async with aiohttp.ClientSession(headers=headers) as http:
        posted = time.monotonic()
        async with http.post(options.url, data=pc.localDescription.sdp) as response:
            body = await response.text()
            ms = round((time.monotonic() - posted) * 1000, 1)
            say(
                "posted",
                status=response.status,
                ms=ms,
                location=response.headers.get("Location"),
                etag=response.headers.get("ETag"),
                retry_after=response.headers.get("Retry-After"),
                body=None if response.status == 201 else body,
            )
            if response.status != 201:
                return 3
            session = response.url.join(aiohttp.client.URL(response.headers["Location"]))
        await pc.setRemoteDescription(RTCSessionDescription(sdp=body, type="answer"))

        for name in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(name, done.set)
        while not done.is_set():
            sent = {}
            for report in (await pc.getStats()).values():
                if report.type == "outbound-rtp":
                    sent[report.kind] = report.packetsSent
            say("sent", **sent)
            try:
                await asyncio.wait_for(done.wait(), 1.0)
            except TimeoutError:
                pass
        async with http.delete(session) as response:
            say("deleted", status=response.status)
    await pc.close()
    say("ended")
    return 0


sys.exit(asyncio.run(main()))
