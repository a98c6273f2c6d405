"""An RTSP origin on loopback with the streams that cameras and encoders give. Prints two ports, the second of which wants the
credentials below, then serves until it is ended.

Needs gir1.2-gst-rtsp-server-1.0, python3-gi and gstreamer1.0-plugins-ugly.
"""

import gi

gi.require_version("Gst", "1.0")
gi.require_version("GstRtspServer", "1.0")
from gi.repository import GLib, Gst, GstRtspServer  # noqa: E402

PICTURE = "videotestsrc is-live=true pattern=ball ! video/x-raw,format=I420,width=320,height=240,framerate=25/1"
H264 = f"{PICTURE} ! x264enc threads=1 speed-preset=ultrafast key-int-max=12 bitrate=200"
VIDEO = f"{H264} tune=zerolatency ! rtph264pay name=pay0 pt=96 config-interval=0"
H265 = f"{PICTURE} ! x265enc speed-preset=ultrafast key-int-max=12 bitrate=200"
SOUND = "audiotestsrc is-live=true ! audio/x-raw,rate=48000,channels=2"
AAC = f"{SOUND} ! avenc_aac ! aacparse"

STREAMS = {
    "/av": f"{VIDEO} {AAC} ! rtpmp4gpay name=pay1 pt=97",
    # Main profile with pictures that refer to later ones.
    "/b-frames": f"{PICTURE} ! x264enc threads=1 speed-preset=superfast key-int-max=12 bframes=3 b-adapt=false ! video/x-h264,profile=main ! rtph264pay name=pay0 pt=96",
    "/h265": f"{H265} tune=zerolatency option-string=open-gop=0 ! rtph265pay name=pay0 pt=96 {SOUND} ! avenc_mp2 ! rtpmpapay name=pay1",
    # Groups that pictures shown before their first one refer out of: no IDR but the very first.
    "/h265-open": f"{H265} option-string=open-gop=1:bframes=3:b-adapt=0 ! rtph265pay name=pay0 pt=96",
    "/ac3": f"{SOUND} ! avenc_ac3 ! ac3parse ! rtpac3pay name=pay0",
    "/latm": f"{AAC} ! rtpmp4apay name=pay0 pt=97",
    "/opus": f"{SOUND} ! opusenc ! rtpopuspay name=pay0 pt=97",
    "/pcmu": "audiotestsrc is-live=true ! audio/x-raw,rate=8000,channels=1 ! mulawenc ! rtppcmupay name=pay0",
    "/pcma": "audiotestsrc is-live=true ! audio/x-raw,rate=8000,channels=1 ! alawenc ! rtppcmapay name=pay0",
    "/mpa": f"{SOUND} ! avenc_mp2 ! rtpmpapay name=pay0",
    # A second picture, and something that is neither picture nor sound.
    "/more": f"{VIDEO} {PICTURE} ! jpegenc ! rtpjpegpay name=pay1 {SOUND} ! rtpgstpay name=pay2 pt=98",
    "/jpeg": f"{PICTURE} ! jpegenc ! rtpjpegpay name=pay0",
    "/ends": f"{H264} tune=zerolatency ! identity eos-after=40 ! rtph264pay name=pay0 pt=96",
}
ROLE, USER, PASSWORD = "viewers", "viewer", "key:to/it"


def listen(auth=None):
    server = GstRtspServer.RTSPServer.new()
    server.set_address("127.0.0.1")
    server.set_service("0")
    server.set_auth(auth)
    for path, stream in STREAMS.items():
        factory = GstRtspServer.RTSPMediaFactory.new()
        factory.set_launch(f"( {stream} )")
        factory.set_shared(True)
        if auth:
            granted = GstRtspServer.RTSPPermissions.new()
            granted.add_permission_for_role(ROLE, "media.factory.access", True)
            granted.add_permission_for_role(ROLE, "media.factory.construct", True)
            factory.set_permissions(granted)
        server.get_mount_points().add_factory(path, factory)
    server.attach(None)
    return server


def auth():
    token = GstRtspServer.RTSPToken.new()
    token.set_string("media.factory.role", ROLE)
    made = GstRtspServer.RTSPAuth.new()
    made.add_basic(GstRtspServer.RTSPAuth.make_basic(USER, PASSWORD), token)
    return made


Gst.init(None)
servers = [listen(), listen(auth())]
print(*(server.get_bound_port() for server in servers), flush=True)
GLib.MainLoop().run()
