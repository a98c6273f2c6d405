//! Bytes into packets: headers, adaptation fields, stuffing, continuity (ISO/IEC 13818-1 §2.4.3).

/// Length of a transport packet, in bytes.
pub const PACKET: usize = 188;

pub(super) const SYNC: u8 = 0x47;
pub(super) const HEADER: usize = 4;
/// What a packet has room for behind its header.
pub(super) const ROOM: usize = PACKET - HEADER;
/// Length and flags of an adaptation field.
const FIELD: usize = 2;
const PCR: usize = 6;

/// PID of packets that say nothing.
pub(super) const NULL: u16 = 0x1fff;

/// PID of a packet.
pub(super) fn pid(packet: &[u8; PACKET]) -> u16 {
    u16::from_be_bytes([packet[1] & 0x1f, packet[2]])
}

/// What the header of a packet says, and its adaptation field.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Head {
    pub pid: u16,
    /// Whether a PES packet or a section begins in it.
    pub starts: bool,
    pub continuity: u8,
    /// Where its payload begins; [`PACKET`] if it has none.
    pub payload: usize,
    pub discontinuity: bool,
    pub random_access: bool,
    /// The clock in 90 kHz ticks.
    pub pcr: Option<u64>,
}

impl Head {
    /// `None` if the packet has neither payload nor adaptation field, or one that does not fit.
    pub fn read(packet: &[u8; PACKET]) -> Option<Head> {
        let control = packet[3] >> 4 & 3;
        let (mut payload, mut flags) = (HEADER, 0);
        if control & 2 != 0 {
            payload = HEADER + 1 + usize::from(packet[4]);
            flags = if packet[4] > 0 { packet[5] } else { 0 };
        }
        if control & 1 == 0 {
            payload = if control == 2 && payload <= PACKET { PACKET } else { return None };
        } else if payload >= PACKET {
            return None;
        }
        let timed = flags & 0x10 != 0 && usize::from(packet[4]) > PCR;
        Some(Head {
            pid: pid(packet),
            starts: packet[1] & 0x40 != 0 && payload < PACKET,
            continuity: packet[3] & 0x0f,
            payload,
            discontinuity: flags & 0x80 != 0,
            random_access: flags & 0x40 != 0,
            pcr: timed.then(|| read_pcr(packet)),
        })
    }
}

/// The PID and the clock of a packet that has one, in 90 kHz ticks modulo 2³³.
pub fn clock(packet: &[u8; PACKET]) -> Option<(u16, u64)> {
    let head = Head::read(packet)?;
    Some((head.pid, head.pcr?))
}

fn read_pcr(packet: &[u8; PACKET]) -> u64 {
    let [high @ .., low] = [packet[6], packet[7], packet[8], packet[9], packet[10]];
    u64::from(u32::from_be_bytes(high)) << 1 | u64::from(low >> 7)
}

/// Replaces the clock of a packet that has one; its part in 27 MHz stays.
pub(super) fn write_pcr(packet: &mut [u8; PACKET], ticks: u64) {
    packet[6..10].copy_from_slice(&((ticks >> 1) as u32).to_be_bytes());
    packet[10] = packet[10] & 0x7f | (ticks as u8) << 7;
}

/// What a packet says about the stream beside its payload.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Adaptation {
    /// The time base of the next PCR is another one.
    pub discontinuity: bool,
    /// Decoding can start at this packet's payload.
    pub random_access: bool,
    /// The clock when this packet goes out, in 90 kHz ticks.
    pub pcr: Option<i64>,
}

impl Adaptation {
    fn length(&self) -> usize {
        match self.pcr {
            Some(_) => FIELD + PCR,
            None if self.discontinuity || self.random_access => FIELD,
            None => 0,
        }
    }
}

/// The packets of one PID.
#[derive(Debug)]
pub(super) struct Pid {
    number: u16,
    /// Of the next packet with payload, modulo 16.
    continuity: u8,
}

impl Pid {
    pub(super) const fn new(number: u16) -> Self {
        Pid { number, continuity: 0 }
    }

    /// Whose last packet had this count.
    pub(super) const fn following(number: u16, continuity: u8) -> Self {
        Pid { number, continuity: (continuity + 1) & 0x0f }
    }

    /// Appends `head` and `body`, one behind the other, as packets of which the first one starts a unit.
    pub(super) fn write(&mut self, adaptation: Adaptation, mut head: &[u8], mut body: &[u8], out: &mut Vec<u8>) {
        let (mut start, mut adaptation) = (true, adaptation);
        while !head.is_empty() || !body.is_empty() {
            let payload = (head.len() + body.len()).min(ROOM - adaptation.length());
            self.header(start, true, ROOM - payload, adaptation, out);
            let (first, rest) = head.split_at(payload.min(head.len()));
            out.extend_from_slice(first);
            head = rest;
            let (second, rest) = body.split_at(payload - first.len());
            out.extend_from_slice(second);
            body = rest;
            self.continuity = (self.continuity + 1) & 0x0f;
            (start, adaptation) = (false, Adaptation::default());
        }
    }

    /// Appends one packet without payload. It does not count in the continuity (§2.4.3.3), but shows the last count.
    pub(super) fn write_adaptation(&mut self, adaptation: Adaptation, out: &mut Vec<u8>) {
        self.header(false, false, ROOM, adaptation, out);
    }

    /// Everything before the payload; the adaptation field with its stuffing takes `field` bytes.
    fn header(&self, start: bool, payload: bool, field: usize, adaptation: Adaptation, out: &mut Vec<u8>) {
        let [high, low] = self.number.to_be_bytes();
        let count = if payload { self.continuity } else { self.continuity.wrapping_sub(1) & 0x0f };
        let control = u8::from(field > 0) << 5 | u8::from(payload) << 4;
        out.extend_from_slice(&[SYNC, u8::from(start) << 6 | high, low, control | count]);
        if field == 0 {
            return;
        }
        out.push((field - 1) as u8);
        if field == 1 {
            return;
        }
        let Adaptation { discontinuity, random_access, pcr } = adaptation;
        out.push(u8::from(discontinuity) << 7 | u8::from(random_access) << 6 | u8::from(pcr.is_some()) << 4);
        let mut written = FIELD;
        if let Some(pcr) = pcr {
            // 33 bits of 90 kHz, 6 reserved, 9 of 27 MHz, which stay zero.
            let field = (wrap(pcr) << 15 | 0x3f << 9).to_be_bytes();
            out.extend_from_slice(&field[2..]);
            written += PCR;
        }
        out.resize(out.len() + field - written, 0xff);
    }
}

/// The 33 bits of a time in 90 kHz ticks that go into the stream.
pub(super) fn wrap(ticks: i64) -> u64 {
    ticks as u64 & ((1 << 33) - 1)
}

/// Appends the head of a PES packet that starts with the start of its unit; `length` is that of everything behind this head
/// (§2.4.3.6).
pub(super) fn write_pes_head(stream: u8, pts: i64, dts: i64, length: usize, out: &mut Vec<u8>) {
    let times = if pts == dts { 5 } else { 10 };
    // Zero = up to the next one, which only video may say. Where the length is known a player need not wait for that.
    let length = u16::try_from(3 + times + length).unwrap_or(0);
    out.extend_from_slice(&[0, 0, 1, stream]);
    out.extend_from_slice(&length.to_be_bytes());
    out.extend_from_slice(&[0x84, if pts == dts { 0x80 } else { 0xc0 }, times as u8]);
    if pts == dts {
        write_timestamp(0b0010, pts, out);
    } else {
        write_timestamp(0b0011, pts, out);
        write_timestamp(0b0001, dts, out);
    }
}

fn write_timestamp(mark: u8, ticks: i64, out: &mut Vec<u8>) {
    let ticks = wrap(ticks);
    out.push(mark << 4 | (ticks >> 29) as u8 & 0x0e | 1);
    out.extend_from_slice(&((ticks >> 14) as u16 | 1).to_be_bytes());
    out.extend_from_slice(&((ticks << 1) as u16 | 1).to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_length_of_payload_fills_whole_packets() {
        for pcr in [None, Some(0)] {
            let adaptation = Adaptation { pcr, ..Adaptation::default() };
            for length in 1..600 {
                let mut pid = Pid::new(0x100);
                let mut out = Vec::new();
                let body: Vec<u8> = (0..length).map(|i| i as u8).collect();
                let (head, rest) = body.split_at(length / 3);
                pid.write(adaptation, head, rest, &mut out);
                assert_eq!(out.len() % PACKET, 0);
                let mut read = Vec::new();
                for packet in out.chunks(PACKET) {
                    let field = if packet[3] & 0x20 != 0 { 1 + packet[4] as usize } else { 0 };
                    read.extend_from_slice(&packet[HEADER + field..]);
                }
                assert_eq!(read, body);
            }
        }
    }

    #[test]
    fn a_clock_alone_repeats_the_last_count() {
        let mut pid = Pid::new(0x1ff);
        let mut out = Vec::new();
        let adaptation = Adaptation { discontinuity: true, random_access: false, pcr: Some((1 << 33) + 1) };
        pid.write(Adaptation::default(), b"a", b"", &mut out);
        pid.write_adaptation(adaptation, &mut out);
        pid.write(Adaptation::default(), b"", b"b", &mut out);
        let clock = &out[PACKET..2 * PACKET];
        assert_eq!(clock[..12], [0x47, 0x01, 0xff, 0x20, 183, 0x90, 0, 0, 0, 0, 0xfe, 0]);
        assert!(clock[12..].iter().all(|&byte| byte == 0xff));
        assert_eq!(out[2 * PACKET + 3] & 0x0f, 1);
    }

    #[test]
    fn times_wrap_at_33_bits() {
        let mut out = Vec::new();
        write_pes_head(0xe0, (1 << 33) + 1, (1 << 33) - 1, 10, &mut out);
        assert_eq!(out[..9], [0, 0, 1, 0xe0, 0, 23, 0x84, 0xc0, 10]);
        assert_eq!(out[9..], [0x31, 0, 1, 0, 3, 0x1f, 0xff, 0xff, 0xff, 0xff]);
    }

    #[test]
    fn a_length_that_does_not_fit_is_left_open() {
        let mut out = Vec::new();
        write_pes_head(0xe0, 0, 0, 65_527, &mut out);
        assert_eq!(out[4..6], [0xff, 0xff]);
        out.clear();
        write_pes_head(0xe0, 0, 0, 65_528, &mut out);
        assert_eq!(out[4..6], [0, 0]);
    }
}
