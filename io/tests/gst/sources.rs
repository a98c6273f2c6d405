//! Sources of channels against real origins.

use std::net::TcpListener;
use std::time::{Duration, Instant};

use holdfast_core::input::{Loss, SourceId, Writer};
use holdfast_io::codec::{Codec, Found, annexb, h265, mpeg_audio};
use holdfast_io::gst::AudioCodec;
use holdfast_io::media::{MediaCommand, MediaEvent, Unit};

use crate::first_nal;
use crate::origin::{self, Origin};
use crate::stage::{Stage, resources, settles_at};

/// A source on the stage.
struct Pull {
    stage: Stage,
    opened: u32,
}

impl Pull {
    fn new(audio: AudioCodec) -> Pull {
        Pull { stage: Stage::new(audio), opened: 0 }
    }

    fn open(&mut self, url: &str) -> SourceId {
        let source = SourceId::from_parts(7, self.opened);
        self.opened += 1;
        let origin = holdfast_io::origin::Origin::parse(url).unwrap();
        let before = Instant::now();
        self.stage.sessions.command(MediaCommand::Open { source, origin });
        assert!(before.elapsed() < Duration::from_millis(100), "Open blocks the loop");
        source
    }

    fn close(&mut self, source: SourceId) {
        let before = Instant::now();
        self.stage.sessions.command(MediaCommand::Close { source });
        assert!(before.elapsed() < Duration::from_millis(100), "Close blocks the loop");
    }

    /// What `wanted` makes of an event; that the source is lost is none of what is waited for.
    fn until<T>(&mut self, what: &str, mut wanted: impl FnMut(MediaEvent) -> Option<T>) -> T {
        self.stage.until(what, |event| match event {
            MediaEvent::SourceLost { loss, why, .. } => panic!("{loss:?}: {why}, while waiting for {what}"),
            event => wanted(event),
        })
    }

    fn opened(&mut self, source: SourceId) {
        self.until("SourceOpened", |event| match event {
            MediaEvent::SourceOpened { source: id } => (id == source).then_some(()),
            event => panic!("{event:?} before SourceOpened"),
        });
    }

    fn unit(&mut self, source: SourceId, wanted: impl Fn(&Unit) -> bool) -> Unit {
        self.until("a unit", |event| match event {
            MediaEvent::Unit(unit) if wanted(&unit) => {
                assert_eq!(unit.from, Writer::Source(source));
                Some(unit)
            }
            _ => None,
        })
    }

    /// `size` bytes of an MPEG-TS.
    fn data(&mut self, source: SourceId, size: usize) -> Vec<u8> {
        let mut got = Vec::new();
        self.until("MPEG-TS", |event| {
            if let MediaEvent::SourceData { source: id, data } = event {
                assert_eq!(id, source);
                got.extend_from_slice(&data);
            }
            (got.len() >= size).then_some(())
        });
        got
    }

    fn lost(&mut self, source: SourceId) -> (Loss, String) {
        self.stage.until("SourceLost", |event| match event {
            MediaEvent::SourceLost { source: id, loss, why } => {
                assert_eq!(id, source);
                Some((loss, why))
            }
            _ => None,
        })
    }

    /// Nothing of any source is said within `span`.
    fn silence(&mut self, span: Duration) {
        let late = self.stage.collect(span);
        assert!(late.is_empty(), "{late:?}");
    }
}

fn is_whole(unit: &Unit) {
    // ADTS: syncword and frame length (ISO 13818-7 §6.2).
    let header = &unit.data[..7];
    assert_eq!((header[0], header[1] & 0xf6), (0xff, 0xf0));
    let length = usize::from(header[3] & 3) << 11 | usize::from(header[4]) << 3 | usize::from(header[5] >> 5);
    assert_eq!(length, unit.data.len());
}

#[test]
fn rtsp_tracks_arrive_in_order_from_a_key_frame_on() {
    let mut pull = Pull::new(AudioCodec::Aac);
    let origin = Origin::rtsp();
    let source = pull.open(&origin.url("/av"));
    pull.opened(source);
    let (mut audio, mut video) = (Vec::new(), Vec::new());
    while audio.len() < 25 || video.len() < 15 {
        let unit = pull.unit(source, |_| true);
        if unit.codec.is_video() { video.push(unit) } else { audio.push(unit) }
    }
    assert!(video[0].key && video[0].codec == Codec::H264);
    for key in video.iter().filter(|unit| unit.key) {
        assert_eq!(first_nal(key), 7, "parameter sets come before every key frame");
    }
    assert!(video.iter().filter(|unit| unit.key).count() >= 2);
    for unit in &audio {
        assert_eq!(unit.codec, Codec::Aac);
        is_whole(unit);
    }
    for track in [&audio, &video] {
        assert!(track.is_sorted_by(|earlier, later| earlier.dts < later.dts));
        assert!(track.iter().all(|unit| unit.dts <= unit.pts));
    }
    // Both on the driver's clock, which began with the stage.
    let now = i64::try_from(pull.stage.epoch.elapsed().as_micros()).unwrap();
    for last in [audio.last().unwrap(), video.last().unwrap()] {
        assert!((-100_000..5_000_000).contains(&(now - last.pts)), "{} at {now}", last.pts);
    }
    pull.close(source);
    pull.silence(Duration::from_millis(300));
}

/// How many UDP sockets this process has.
fn udp_sockets() -> usize {
    let table = std::fs::read_to_string("/proc/self/net/udp").unwrap();
    let all: Vec<&str> = table.lines().skip(1).filter_map(|line| line.split_whitespace().nth(9)).collect();
    let own = std::fs::read_dir("/proc/self/fd").unwrap().filter_map(|fd| std::fs::read_link(fd.unwrap().path()).ok());
    own.filter(|fd| {
        let inode = fd.to_str().and_then(|fd| fd.strip_prefix("socket:[")?.strip_suffix(']'));
        inode.is_some_and(|inode| all.contains(&inode))
    })
    .count()
}

#[test]
fn rtsp_over_udp_if_the_url_says_so() {
    let mut pull = Pull::new(AudioCodec::Aac);
    let origin = Origin::rtsp();
    let source = pull.open(&origin.url("/av"));
    pull.unit(source, |unit| unit.key && unit.codec.is_video());
    assert_eq!(udp_sockets(), 0, "TCP unless the URL says otherwise");
    pull.close(source);
    let source = pull.open(&origin.url("/av?transport=udp"));
    pull.unit(source, |unit| unit.key && unit.codec.is_video());
    assert_eq!(udp_sockets(), 4, "RTP and RTCP of two tracks");
    pull.close(source);
}

#[test]
fn b_frames_are_decoded_in_the_order_they_come() {
    let mut pull = Pull::new(AudioCodec::Aac);
    let origin = Origin::rtsp();
    for path in ["/b-frames", "/h265-open"] {
        let source = pull.open(&origin.url(path));
        pull.opened(source);
        // The very first group on, none of which may be missing: a picture before it is of no use.
        let first = pull.unit(source, |unit| unit.key);
        let units: Vec<Unit> = std::iter::once(first).chain((0..60).map(|_| pull.unit(source, |_| true))).collect();
        assert!(!units.is_sorted_by(|earlier, later| earlier.pts < later.pts), "{path}: there are B-frames");
        assert!(units.iter().all(|unit| unit.dts <= unit.pts), "{path}");
        let rank = |unit: &Unit| units[..5].iter().filter(|other| other.pts < unit.pts).count();
        assert_eq!(units[..5].iter().map(rank).collect::<Vec<_>>(), [0, 4, 2, 1, 3], "{path}");
        let mut steps: Vec<i64> = units.windows(2).map(|pair| pair[1].dts - pair[0].dts).collect();
        assert!(steps.iter().all(|step| *step > 0), "{path}: {steps:?}");
        // The times of showing, and so these, bear what the jitter buffer makes of a busy machine.
        steps.sort_unstable();
        assert!((30_000..50_000).contains(&steps[30]), "{path}: {steps:?}");
        pull.close(source);
    }
}

/// Types of the NAL units of an access unit of H.265 in Annex B.
fn h265_types(unit: &Unit) -> Vec<u8> {
    annexb::units(&unit.data).map(|nal| h265::kind(nal[0])).collect()
}

#[test]
fn h265_arrives_with_parameter_sets_before_each_start() {
    let mut pull = Pull::new(AudioCodec::Aac);
    let origin = Origin::rtsp();
    // Groups that stand for themselves begin with an IDR, others with a CRA but for the very first.
    for (path, cra) in [("/h265", false), ("/h265-open", true)] {
        let source = pull.open(&origin.url(path));
        pull.opened(source);
        let units: Vec<Unit> = (0..60).map(|_| pull.unit(source, |unit| unit.codec.is_video())).collect();
        assert!(units.iter().all(|unit| unit.codec == Codec::H265 && unit.dts <= unit.pts));
        assert!(units.is_sorted_by(|earlier, later| earlier.dts < later.dts));
        let mut starts = Vec::new();
        for unit in &units {
            let types = h265_types(unit);
            let slice = *types.iter().find(|kind| h265::SLICES.contains(kind)).unwrap();
            assert_eq!(unit.key, h265::RANDOM_ACCESS.contains(&slice), "{path}: {types:?}");
            if unit.key {
                starts.push(slice);
                let sets: Vec<u8> = types.into_iter().filter(|kind| (32..=34).contains(kind)).collect();
                assert_eq!(sets, [32, 33, 34], "{path}");
            }
        }
        assert!(starts.len() >= 3 && starts.contains(&21) == cra, "{path}: {starts:?}");
        pull.close(source);
    }
}

#[test]
fn mpeg_audio_and_ac_3_stay_as_they_are_where_viewers_know_them() {
    let origin = Origin::rtsp();
    for (audio, path, codec) in [
        (AudioCodec::Opus, "/mpa", Codec::Mp2),
        (AudioCodec::Opus, "/ac3", Codec::Ac3),
        (AudioCodec::Aac, "/ac3", Codec::Ac3),
    ] {
        let mut pull = Pull::new(audio);
        let source = pull.open(&origin.url(path));
        for _ in 0..10 {
            let unit = pull.unit(source, |_| true);
            assert_eq!(unit.codec, codec);
            if codec == Codec::Mp2 {
                let Found::Frame(frame) = mpeg_audio::frame(&unit.data) else { panic!("{:02x?}", &unit.data[..4]) };
                assert_eq!((frame.codec, frame.length), (Codec::Mp2, unit.data.len()));
            } else {
                assert_eq!(unit.data[..2], [0x0b, 0x77]);
            }
        }
        pull.close(source);
    }
}

#[test]
fn whatever_sound_comes_becomes_aac() {
    let mut pull = Pull::new(AudioCodec::Aac);
    let origin = Origin::rtsp();
    for path in ["/latm", "/opus", "/pcmu", "/pcma", "/mpa"] {
        let source = pull.open(&origin.url(path));
        pull.opened(source);
        for _ in 0..5 {
            let unit = pull.unit(source, |_| true);
            assert_eq!(unit.codec, Codec::Aac, "{path}");
            is_whole(&unit);
        }
        pull.close(source);
    }
}

#[test]
fn opus_stays_as_it_is_where_viewers_know_it() {
    let mut pull = Pull::new(AudioCodec::Opus);
    let origin = Origin::rtsp();
    let source = pull.open(&origin.url("/opus"));
    assert_eq!(pull.unit(source, |_| true).codec, Codec::Opus);
    pull.close(source);
    // And what needed an encoder is left out.
    let source = pull.open(&origin.url("/pcmu"));
    assert_eq!(pull.lost(source).0, Loss::Unusable);
}

#[test]
fn tracks_that_viewers_cannot_have_are_left_out() {
    let mut pull = Pull::new(AudioCodec::Aac);
    let origin = Origin::rtsp();
    let source = pull.open(&origin.url("/more?transport=udp"));
    for _ in 0..30 {
        assert_eq!(pull.unit(source, |_| true).codec, Codec::H264);
    }
    assert_eq!(udp_sockets(), 2, "the other two are not even asked for");
    pull.close(source);
    let source = pull.open(&origin.url("/jpeg"));
    assert_eq!(pull.lost(source).0, Loss::Unusable);
}

#[test]
fn credentials_of_the_url_open_what_is_locked_and_are_never_repeated() {
    let mut pull = Pull::new(AudioCodec::Aac);
    let origin = Origin::rtsp();
    let at = |credentials: &str| format!("rtsp://{credentials}127.0.0.1:{}/av", origin.locked());
    let source = pull.open(&at("viewer:key%3Ato%2Fit@"));
    pull.unit(source, |unit| unit.codec.is_video());
    pull.close(source);
    for credentials in ["", "viewer:geheim@", "somebody:geheim@"] {
        let source = pull.open(&at(credentials));
        let (loss, why) = pull.lost(source);
        assert_eq!(loss, Loss::Forbidden, "{why}");
        assert!(!why.contains("geheim") && !why.contains("somebody"), "{why}");
    }
}

#[test]
fn why_an_rtsp_origin_gives_nothing_is_told_apart() {
    let mut pull = Pull::new(AudioCodec::Aac);
    let origin = Origin::rtsp();
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    for (url, wanted) in [
        (origin.url("/nowhere"), Loss::NotFound),
        (format!("rtsp://{nobody}/av"), Loss::Unreachable),
        (String::from("rtsp://nowhere.invalid/av"), Loss::Unreachable),
    ] {
        let source = pull.open(&url);
        let (loss, why) = pull.lost(source);
        assert_eq!(loss, wanted, "{why}");
    }
    let source = pull.open(&origin.url("/ends"));
    pull.opened(source);
    assert_eq!(pull.lost(source).0, Loss::Ended);
}

#[test]
fn an_rtsp_origin_that_goes_away_is_lost() {
    let mut pull = Pull::new(AudioCodec::Aac);
    let origin = Origin::rtsp();
    let source = pull.open(&origin.url("/av"));
    pull.unit(source, |unit| unit.key);
    drop(origin);
    let (loss, why) = pull.lost(source);
    assert!(matches!(loss, Loss::Ended | Loss::Reset), "{loss:?}: {why}");
}

#[test]
fn an_rtsp_origin_that_hangs_goes_on_with_its_connection_or_is_closed() {
    let mut pull = Pull::new(AudioCodec::Aac);
    let origin = Origin::rtsp();
    let source = pull.open(&origin.url("/av"));
    pull.opened(source);
    pull.unit(source, |unit| unit.key);
    origin.hang();
    pull.stage.collect(Duration::from_millis(500));
    pull.silence(Duration::from_secs(3));
    origin.resume();
    let back = Instant::now();
    pull.unit(source, |unit| unit.codec.is_video());
    assert!(back.elapsed() < Duration::from_secs(5));
    pull.unit(source, |unit| unit.key && unit.codec.is_video());
    origin.hang();
    pull.close(source);
    pull.silence(Duration::from_millis(500));
    origin.resume();
    let source = pull.open(&origin.url("/av"));
    pull.unit(source, |unit| unit.key);
    pull.close(source);
}

#[test]
fn srt_gives_mpeg_ts() {
    let mut pull = Pull::new(AudioCodec::Aac);
    let origin = Origin::srt("");
    let source = pull.open(&format!("srt://127.0.0.1:{}", origin.port()));
    pull.opened(source);
    let data = pull.data(source, 188 * 100);
    assert!(data.chunks_exact(188).all(|packet| packet[0] == 0x47));
    origin.end();
    let (loss, why) = pull.lost(source);
    assert_eq!(loss, Loss::Reset, "{why}");
}

#[test]
fn srt_takes_mode_and_passphrase_from_the_url() {
    let mut pull = Pull::new(AudioCodec::Aac);
    let port = origin::free_port();
    let source = pull.open(&format!("srt://127.0.0.1:{port}?mode=listener"));
    let caller = Origin::srt_caller(port);
    pull.opened(source);
    pull.data(source, 188 * 10);
    pull.close(source);
    drop(caller);

    let locked = Origin::srt("&passphrase=longenough1");
    let source = pull.open(&format!("srt://127.0.0.1:{}?passphrase=longenough1", locked.port()));
    pull.data(source, 188 * 10);
    pull.close(source);
    drop(locked);

    let locked = Origin::srt("&passphrase=longenough1");
    let source = pull.open(&format!("srt://127.0.0.1:{}?passphrase=longenough2", locked.port()));
    let (loss, why) = pull.lost(source);
    assert_eq!(loss, Loss::Forbidden, "{why}");
    assert!(!why.contains("longenough"), "{why}");
}

#[test]
fn why_an_srt_origin_gives_nothing_is_told_apart() {
    let mut pull = Pull::new(AudioCodec::Aac);
    for (url, wanted) in [
        (format!("srt://127.0.0.1:{}?conntimeo=300", origin::free_port()), Loss::Unreachable),
        (String::from("srt://nowhere.invalid:9000"), Loss::Unresolved),
    ] {
        let source = pull.open(&url);
        let (loss, why) = pull.lost(source);
        assert_eq!(loss, wanted, "{why}");
    }
}

#[test]
fn sources_come_and_go_and_leave_nothing() {
    let mut pull = Pull::new(AudioCodec::Aac);
    let origin = Origin::rtsp();
    let srt = Origin::srt("");
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let dumb = TcpListener::bind("127.0.0.1:0").unwrap();
    let urls = [
        origin.url("/av"),
        format!("rtsp://{nobody}/av"),
        format!("rtsp://{}/av", dumb.local_addr().unwrap()),
        format!("srt://127.0.0.1:{}", srt.port()),
        format!("srt://127.0.0.1:{}", origin::free_port()),
        format!("srt://127.0.0.1:{}?mode=listener", origin::free_port()),
    ];
    let round = |pull: &mut Pull, number: usize| {
        for url in &urls {
            let source = pull.open(url);
            // Every second one is taken down in the middle of its opening.
            if number.is_multiple_of(2) {
                pull.stage.next(Duration::from_millis(60));
            }
            pull.close(source);
        }
    };
    for url in [&urls[0], &urls[3]] {
        let source = pull.open(url);
        pull.opened(source);
        pull.close(source);
    }
    (0..4).for_each(|number| round(&mut pull, number));
    pull.stage.collect(Duration::from_secs(2));
    let base = resources();
    (0..50).for_each(|number| round(&mut pull, number));
    settles_at(base);
    pull.silence(Duration::from_millis(100));
}
