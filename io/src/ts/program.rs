//! What a source says of its programs: PAT and PMT, read (ISO/IEC 13818-1 §2.4.4.3, §2.4.4.8).

const HEAD: usize = 8;
const CA_DESCRIPTOR: u8 = 0x09;
const REGISTRATION: u8 = 0x05;

/// One program of a source, as its PMT declares it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// Its number in the PAT.
    pub number: u16,
    /// PID of the clock; 0x1fff if there is none.
    pub clock: u16,
    /// Descriptors of the program, without those of conditional access.
    pub descriptors: Vec<u8>,
    /// In the order of the PMT; no PID twice.
    pub streams: Vec<Elementary>,
}

/// One elementary stream of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Elementary {
    /// How it is coded (§2.4.4.10, and what others made of the private numbers).
    pub stream_type: u8,
    /// Where the source sends it.
    pub pid: u16,
    /// Its descriptors, without those of conditional access.
    pub descriptors: Vec<u8>,
}

/// What an elementary stream is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Pictures.
    Video,
    /// Sound.
    Audio,
    /// Anything else: subtitles, cues, sections.
    Data,
}

impl Program {
    /// The stream at whose random access points a player starts: the first video, or the first audio where there is none.
    pub fn lead(&self) -> Option<&Elementary> {
        let first = |kind| self.streams.iter().find(|stream| stream.kind() == kind);
        first(Kind::Video).or_else(|| first(Kind::Audio))
    }

    /// Reads a section without its checksum; `None` if it is no PMT of this program that is in force.
    pub(super) fn parse(section: &[u8], number: u16) -> Option<Program> {
        let (id, body) = table(section, 0x02)?;
        let (clock, rest) = body.split_first_chunk::<2>()?;
        let (descriptors, mut rest) = counted(rest)?;
        if id != number {
            return None;
        }
        let mut streams: Vec<Elementary> = Vec::new();
        while let Some(([stream_type, high, low], more)) = rest.split_first_chunk::<3>() {
            let (descriptors, more) = counted(more)?;
            rest = more;
            let pid = u16::from_be_bytes([high & 0x1f, *low]);
            if usable(pid) && streams.iter().all(|stream| stream.pid != pid) {
                streams.push(Elementary { stream_type: *stream_type, pid, descriptors: clear(descriptors) });
            }
        }
        let clock = u16::from_be_bytes([clock[0] & 0x1f, clock[1]]);
        Some(Program { number, clock, descriptors: clear(descriptors), streams })
    }
}

impl Elementary {
    /// What it is for.
    pub fn kind(&self) -> Kind {
        match self.stream_type {
            0x01 | 0x02 | 0x10 | 0x1b | 0x24 | 0x33 | 0x42 | 0xd1 | 0xd2 | 0xd4 | 0xea => Kind::Video,
            0x03 | 0x04 | 0x0f | 0x11 | 0x1c | 0x2d | 0x2e | 0x81 | 0x83 | 0x84 | 0x85 | 0x87 | 0x88 => Kind::Audio,
            // SCTE subtitles took a number that others use for DTS.
            0x82 if self.registration() != Some(*b"CUEI") => Kind::Audio,
            0x06 => self.private_kind(),
            _ => Kind::Data,
        }
    }

    /// The format of private data, by its registration or the descriptors of ETSI EN 300 468 §6.2.
    fn private_kind(&self) -> Kind {
        let registered = self.registration().map_or(Kind::Data, |registration| match &registration {
            b"HEVC" | b"AV01" | b"VC-1" => Kind::Video,
            b"Opus" | b"AC-3" | b"EAC3" | b"AC-4" | b"DTS1" | b"DTS2" | b"DTS3" | b"BSSD" => Kind::Audio,
            _ => Kind::Data,
        });
        let described = |(tag, body): (u8, &[u8])| match tag {
            0x6a | 0x7a | 0x7b | 0x7c => true,
            0x7f => matches!(body.first(), Some(0x0e | 0x15 | 0x19)),
            _ => false,
        };
        if registered == Kind::Data && descriptors(&self.descriptors).any(described) { Kind::Audio } else { registered }
    }

    /// How many channels Opus is declared with: the configuration code of the DVB extension descriptor for it, 2 without one.
    pub fn opus_channels(&self) -> u8 {
        let extension = descriptors(&self.descriptors).find(|(tag, body)| *tag == 0x7f && body.first() == Some(&0x80));
        match extension.and_then(|(_, body)| body.get(1)) {
            // Two channels that are independent have number 0.
            None | Some(0) => 2,
            Some(channels) => *channels,
        }
    }

    pub(super) fn registration(&self) -> Option<[u8; 4]> {
        let (_, body) = descriptors(&self.descriptors).find(|(tag, _)| *tag == REGISTRATION)?;
        body.first_chunk().copied()
    }
}

/// Numbers of the programs in a section without its checksum and the PIDs of their maps; `None` if it is no PAT in force.
pub(super) fn programs(section: &[u8]) -> Option<impl Iterator<Item = (u16, u16)>> {
    let (_, body) = table(section, 0x00)?;
    let (entries, _) = body.as_chunks::<4>();
    let entry =
        |entry: &[u8; 4]| (u16::from_be_bytes([entry[0], entry[1]]), u16::from_be_bytes([entry[2] & 0x1f, entry[3]]));
    // Program 0 is the network's.
    Some(entries.iter().map(entry).filter(|(number, pid)| *number != 0 && usable(*pid)))
}

/// Whether the section is the only one of its table.
pub(super) fn is_alone(section: &[u8]) -> bool {
    section.get(7) == Some(&0)
}

/// Tag and body of each descriptor.
pub(super) fn descriptors(mut data: &[u8]) -> impl Iterator<Item = (u8, &[u8])> {
    std::iter::from_fn(move || {
        let ([tag, length], rest) = data.split_first_chunk::<2>()?;
        let (body, rest) = rest.split_at_checked(usize::from(*length))?;
        data = rest;
        Some((*tag, body))
    })
}

/// Identifier and body of a table that is in force.
fn table(section: &[u8], table: u8) -> Option<(u16, &[u8])> {
    let (head, body) = section.split_first_chunk::<HEAD>()?;
    let in_force = head[1] & 0x80 != 0 && head[5] & 1 != 0;
    (head[0] == table && in_force).then_some((u16::from_be_bytes([head[3], head[4]]), body))
}

/// What twelve bits of length say, and the rest.
fn counted(data: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = data.split_first_chunk::<2>()?;
    rest.split_at_checked(usize::from(u16::from_be_bytes([length[0] & 0x0f, length[1]])))
}

/// Descriptors without those that name PIDs of keys, which do not go out.
fn clear(data: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(data.len());
    for (tag, body) in descriptors(data).filter(|(tag, _)| *tag != CA_DESCRIPTOR) {
        out.extend_from_slice(&[tag, body.len() as u8]);
        out.extend_from_slice(body);
    }
    out
}

/// Whether a program may use the PID: not one of the system's tables, nor that of null packets.
fn usable(pid: u16) -> bool {
    (0x10..0x1fff).contains(&pid)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stream(stream_type: u8, descriptors: &[u8]) -> Elementary {
        Elementary { stream_type, pid: 0x100, descriptors: descriptors.to_vec() }
    }

    #[test]
    fn kinds_are_told_by_type_registration_and_descriptor() {
        for (coding, descriptors, kind) in [
            (0x1b, &b""[..], Kind::Video),
            (0x0f, b"", Kind::Audio),
            (0x06, b"", Kind::Data),
            (0x06, b"\x05\x04Opus", Kind::Audio),
            (0x06, b"\x05\x04HEVC", Kind::Video),
            (0x06, b"\x6a\x01\x00", Kind::Audio),
            (0x06, b"\x56\x05eng\x09\x00", Kind::Data),
            (0x82, b"", Kind::Audio),
            (0x82, b"\x05\x04CUEI", Kind::Data),
            (0x86, b"\x05\x04CUEI", Kind::Data),
            (0x05, b"", Kind::Data),
        ] {
            assert_eq!(stream(coding, descriptors).kind(), kind, "{coding:#x} {descriptors:?}");
        }
    }

    #[test]
    fn a_map_is_read_without_what_names_keys() {
        let body = [
            &[0xe1, 0x00, 0xf0, 9, 0x09, 4, 1, 2, 0xe0, 3, 0x0e, 1, 7][..],
            &[0x1b, 0xe1, 0x00, 0xf0, 0, 0x0f, 0xe1, 0x01, 0xf0, 3, 0x52, 1, 5],
            &[0x0f, 0xe1, 0x01, 0xf0, 0, 0x0f, 0xff, 0xff, 0xf0, 0],
        ];
        let section = [&[2, 0xb0, 0, 0, 3, 0xc1, 0, 0][..], &body.concat()].concat();
        let program = Program::parse(&section, 3).unwrap();
        assert_eq!((program.clock, &program.descriptors[..]), (0x100, &[0x0e, 1, 7][..]));
        let streams: Vec<_> = program.streams.iter().map(|stream| (stream.pid, &stream.descriptors[..])).collect();
        assert_eq!(streams, [(0x100, &[][..]), (0x101, &[0x52, 1, 5])], "neither a PID twice nor that of null packets");
        assert_eq!(Program::parse(&section, 4), None);
        let mut next = section.clone();
        next[5] = 0xc0;
        assert_eq!(Program::parse(&next, 3), None, "not in force yet");
        for length in 0..section.len() {
            Program::parse(&section[..length], 3);
        }
    }
}
