"""A WHIP publisher on FFmpeg's own `whip` muxer, as it comes inside PyAV.

Prints one JSON object a line and goes on until it is killed.
"""

import argparse
import datetime
import fractions
import json
import math
import pathlib
import struct
import tempfile
import time

import av
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

STARTED = time.monotonic()
FPS = 25
RATE = 48000
SAMPLES = 960
WAVES = b"".join(
    struct.pack("<hh", value, value) for value in (int(6000 * math.sin(2 * math.pi * i / 96)) for i in range(SAMPLES))
)


def say(event, **facts):
    print(json.dumps({"event": event, "t": round(time.monotonic() - STARTED, 3), **facts}), flush=True)


def certificate(folder):
    """A P-256 pair: the curve the muxer would choose by itself is refused by GStreamer's DTLS."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "publisher")])
    now = datetime.datetime.now(datetime.timezone.utc)
    built = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=30))
        .sign(key, hashes.SHA256())
    )
    cert_file, key_file = folder / "cert.pem", folder / "key.pem"
    cert_file.write_bytes(built.public_bytes(serialization.Encoding.PEM))
    key_file.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
    )
    return str(cert_file), str(key_file)


def picture(number):
    frame = av.VideoFrame(320, 240, "yuv420p")
    for plane, value in zip(frame.planes, (40 + (number * 7) % 160, 110, 140)):
        plane.update(bytes([value]) * plane.buffer_size)
    frame.pts = number
    frame.time_base = fractions.Fraction(1, FPS)
    return frame


def tone(number):
    frame = av.AudioFrame(format="s16", layout="stereo", samples=SAMPLES)
    frame.planes[0].update(WAVES)
    frame.sample_rate = RATE
    frame.pts = number * SAMPLES
    frame.time_base = fractions.Fraction(1, RATE)
    return frame


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--url", required=True)
    parser.add_argument("--token")
    options = parser.parse_args()

    with tempfile.TemporaryDirectory() as folder:
        cert_file, key_file = certificate(pathlib.Path(folder))
        muxer = {"cert_file": cert_file, "key_file": key_file}
        if options.token:
            muxer["authorization"] = options.token
        say("ready")
        with av.open(options.url, "w", format="whip", options=muxer) as output:
            video = output.add_stream("libx264", rate=FPS)
            video.width, video.height, video.pix_fmt = 320, 240, "yuv420p"
            video.codec_context.time_base = fractions.Fraction(1, FPS)
            video.options = {
                "preset": "ultrafast", "tune": "zerolatency", "profile": "baseline", "g": str(FPS), "bf": "0",
            }
            audio = output.add_stream("libopus", rate=RATE)
            audio.layout = "stereo"
            output.start_encoding()
            say("connected")
            start = time.monotonic()
            pictures = packets = 0
            while True:
                if pictures / FPS <= packets * SAMPLES / RATE:
                    due, stream, frame = pictures / FPS, video, picture(pictures)
                    pictures += 1
                else:
                    due, stream, frame = packets * SAMPLES / RATE, audio, tone(packets)
                    packets += 1
                time.sleep(max(0.0, start + due - time.monotonic()))
                output.mux(stream.encode(frame))
                if stream is video and pictures % FPS == 0:
                    say("sent", video=pictures, audio=packets)


main()
