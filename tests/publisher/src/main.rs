//! A WHIP publisher made of GStreamer's own WHIP elements: `whipclientsink` and the older `whipsink`.
//!
//! It publishes generated pictures and a tone, prints one JSON object a line for what happens to it, and goes on until
//! it is killed. SIGTERM ends the session properly, with a DELETE.

use std::io::{Read as _, Write as _};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use clap::{Parser, ValueEnum};
use gst::glib;
use gst::prelude::*;
use gstreamer as gst;
use serde_json::{Value, json};

#[derive(Parser)]
struct Options {
    /// The endpoint: http://…/whip/{name}
    #[arg(long)]
    url: String,
    /// Bearer token
    #[arg(long)]
    token: Option<String>,
    #[arg(long, value_enum, default_value = "whipclientsink")]
    kind: Kind,
    /// Frames per second, or `none`
    #[arg(long, default_value = "30")]
    video: String,
    #[arg(long, value_enum, default_value = "on")]
    audio: Audio,
    /// The one local address ICE may use; libnice leaves loopback out unless it is told to take it
    #[arg(long, default_value = "127.0.0.1")]
    bind: String,
    /// Wait for the end of standard input before anything is sent
    #[arg(long)]
    wait: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum Kind {
    Whipclientsink,
    Whipsink,
}

#[derive(Clone, Copy, ValueEnum)]
enum Audio {
    On,
    Silent,
    None,
}

fn print(event: Value) {
    let mut out = std::io::stdout().lock();
    // A reader that went away wants no more events; the publisher's life does not hang on it.
    let _ = writeln!(out, "{event}").and_then(|()| out.flush());
}

/// The source of pictures: a real camera's cadence, also when that is one in five seconds.
fn video(fps: &str) -> Result<Option<String>, String> {
    if fps == "none" {
        return Ok(None);
    }
    let fps: f64 = fps.parse().map_err(|_| format!("--video is frames per second or none, not {fps:?}"))?;
    let rate = if fps >= 1.0 { format!("{}/1", fps.round()) } else { format!("1/{}", (1.0 / fps).round()) };
    Ok(Some(format!("videotestsrc is-live=true pattern=ball ! video/x-raw,width=320,height=240,framerate={rate}")))
}

fn audio(audio: Audio) -> Option<&'static str> {
    match audio {
        Audio::On => {
            Some("audiotestsrc is-live=true samplesperbuffer=960 volume=0.2 ! audio/x-raw,rate=48000,channels=2")
        }
        Audio::Silent => {
            Some("audiotestsrc is-live=true samplesperbuffer=960 wave=silence ! audio/x-raw,rate=48000,channels=2")
        }
        Audio::None => None,
    }
}

fn describe(options: &Options) -> Result<String, String> {
    let video = video(&options.video)?;
    let audio = audio(options.audio);
    let mut text = match options.kind {
        Kind::Whipclientsink => String::from(
            "whipclientsink name=sink video-caps=video/x-h264 audio-caps=audio/x-opus congestion-control=disabled ",
        ),
        Kind::Whipsink => String::from("whipsink name=sink "),
    };
    if let Some(source) = video {
        text += &source;
        text += match options.kind {
            Kind::Whipclientsink => " ! videoconvert ! queue ! sink. ",
            Kind::Whipsink => {
                " ! videoconvert ! x264enc tune=zerolatency speed-preset=ultrafast bitrate=400 key-int-max=60 \
                 ! video/x-h264,profile=constrained-baseline ! rtph264pay aggregate-mode=zero-latency config-interval=-1 \
                 ! application/x-rtp,media=video,encoding-name=H264,payload=96,clock-rate=90000 ! queue ! sink. "
            }
        };
    }
    if let Some(source) = audio {
        text += source;
        text += match options.kind {
            Kind::Whipclientsink => " ! audioconvert ! queue ! sink. ",
            Kind::Whipsink => {
                " ! audioconvert ! opusenc ! rtpopuspay \
                 ! application/x-rtp,media=audio,encoding-name=OPUS,payload=97,clock-rate=48000,encoding-params=(string)2 \
                 ! queue ! sink. "
            }
        };
    }
    Ok(text)
}

/// Lets ICE use the wanted address, and tells of the connection's states.
fn prepare(webrtcbin: &gst::Element, bind: &str, started: Instant) {
    let ice = webrtcbin.property::<glib::Object>("ice-agent");
    ice.emit_by_name::<bool>("add-local-ip-address", &[&bind]);
    ice.property::<glib::Object>("agent").set_property("upnp", false);
    webrtcbin.connect_notify(Some("connection-state"), move |webrtcbin, _| {
        let state = webrtcbin.property_value("connection-state");
        let state = glib::EnumValue::from_value(&state).map(|(_, value)| value.nick().to_owned()).unwrap_or_default();
        let ms = started.elapsed().as_millis() as u64;
        let event = if state == "connected" { "connected" } else { "state" };
        print(json!({"event": event, "state": state, "ms": ms}));
    });
}

fn run(options: &Options, terminated: &AtomicBool) -> Result<(), String> {
    gst::init().map_err(|error| error.to_string())?;
    gstrswebrtc::plugin_register_static().map_err(|error| error.to_string())?;
    gstwebrtchttp::plugin_register_static().map_err(|error| error.to_string())?;
    let pipeline = gst::parse::launch(&describe(options)?).map_err(|error| error.to_string())?;
    let pipeline = pipeline.downcast::<gst::Pipeline>().map_err(|_| "not a pipeline".to_owned())?;
    let sink = pipeline.by_name("sink").ok_or("no sink")?;

    print(json!({"event": "ready"}));
    if options.wait {
        let _ = std::io::stdin().read(&mut [0; 64]);
    }
    let started = Instant::now();
    match options.kind {
        Kind::Whipclientsink => {
            sink.set_property("stun-server", None::<&str>);
            let signaller = sink.property::<glib::Object>("signaller");
            signaller.set_property("whip-endpoint", &options.url);
            if let Some(token) = &options.token {
                signaller.set_property("auth-token", token);
            }
            let bind = options.bind.clone();
            sink.connect("consumer-added", false, move |arguments| {
                if let Some(Ok(webrtcbin)) = arguments.get(2).map(|value| value.get::<gst::Element>()) {
                    prepare(&webrtcbin, &bind, started);
                }
                None
            });
        }
        Kind::Whipsink => {
            sink.set_property("whip-endpoint", &options.url);
            if let Some(token) = &options.token {
                sink.set_property("auth-token", token);
            }
            let bin = sink.downcast_ref::<gst::Bin>().ok_or("whipsink is no bin")?;
            let webrtcbin = bin.iterate_all_by_element_factory_name("webrtcbin").into_iter().find_map(Result::ok);
            prepare(&webrtcbin.ok_or("whipsink has no webrtcbin")?, &options.bind, started);
        }
    }

    let bus = pipeline.bus().ok_or("no bus")?;
    pipeline.set_state(gst::State::Playing).map_err(|error| error.to_string())?;
    loop {
        let Some(message) = bus.timed_pop(gst::ClockTime::from_mseconds(200)) else {
            if terminated.load(Ordering::Relaxed) {
                break;
            }
            continue;
        };
        if let gst::MessageView::Error(error) = message.view() {
            let text = format!("{} ({})", error.error(), error.debug().unwrap_or_default());
            let _ = pipeline.set_state(gst::State::Null);
            return Err(text);
        }
    }
    pipeline.set_state(gst::State::Null).map_err(|error| error.to_string())?;
    print(json!({"event": "ended", "ms": started.elapsed().as_millis() as u64}));
    // The elements' DELETE runs on their own threads.
    std::thread::sleep(Duration::from_millis(300));
    Ok(())
}

fn main() -> ExitCode {
    let options = Options::parse();
    let terminated = Arc::new(AtomicBool::new(false));
    let result = signal_hook::flag::register(signal_hook::consts::SIGTERM, Arc::clone(&terminated))
        .map_err(|error| error.to_string())
        .and_then(|_| run(&options, &terminated));
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            print(json!({"event": "error", "error": error}));
            ExitCode::from(3)
        }
    }
}
