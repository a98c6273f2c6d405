//! The scanner of one connection: any bytes in, media of one program out.

use std::collections::VecDeque;
use std::sync::Arc;

use super::fault::Fault;
use super::packet::{Head, NULL, PACKET, pid};
use super::pes::{Pes, PesHead, since};
use super::picture::{Inspection, Pictures, Start};
use super::program::{self, Kind, Program};
use super::section::Sections;
use super::sync::Framing;

/// How many bytes may come without any media. A sender of 8 Mbit/s has 20 PATs and PMTs in that.
const MAX_SILENCE: u64 = 2 << 20;
/// How many bytes in a row may be no packets.
const MAX_SKIPPED: usize = 1 << 20;
/// What is known to be something else is not read further than this.
const MAX_FOREIGN: u64 = 4 << 10;
/// Limits are looked at where this many bytes have come in all, so that how they were cut changes nothing.
const STEP: u64 = 4 << 10;
/// The same once media came; also the most that goes into one segment, with what was held before it.
const PIECE: u64 = 64 << 10;
/// What of a connection's first bytes tells what they are.
const FIRST: usize = 64;
/// The first bytes of a picture that are looked at. Parameter sets and private SEI before it take up to 3 kB.
const MAX_HEAD: usize = 8 << 10;
/// Packets that are held until it is known whether a random access point is among them.
const MAX_HELD: usize = 256 * PACKET;
/// Between random access points where each frame would be one, in 90 kHz ticks.
const AUDIO_INTERVAL: u64 = 400 * 90;
/// A video that is declared and sends nothing while audio goes on for this long does not keep players from starting.
const PATIENCE: i64 = 3_000 * 90;
const PIDS: usize = 1 << 13;

/// Which program of a source is wanted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Choice {
    /// The first one that the PAT names.
    #[default]
    First,
    /// The one of this number.
    Number(u16),
}

/// Packets of one program in the order in which they came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Whole packets of the program's streams and its clock, at least one of them video or audio. Without PAT and PMT.
    pub data: Vec<u8>,
    /// If a player can start at its first packet of video or audio: when that is to be shown, 90 kHz, 33 bits. Random access points
    /// are nowhere else.
    pub random_access: Option<u64>,
    /// The program that is in force; another `Arc` as soon as that changes.
    pub program: Arc<Program>,
}

/// What a scanner came across.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Scanned {
    /// Packets of any kind.
    pub packets: u64,
    /// Bytes that belong to no packet.
    pub skipped_bytes: u64,
    /// How often packets did not go on where they should.
    pub sync_losses: u64,
    /// Packets that do not belong to the program, or that had to wait for media for too long. Dropped.
    pub foreign: u64,
    /// Packets that their sender marked as damaged. Dropped.
    pub damaged: u64,
    /// Packets of the program that are scrambled. Dropped.
    pub scrambled: u64,
    /// Packets with an adaptation field that does not fit. Dropped.
    pub malformed: u64,
    /// PAT and PMT sections with a wrong checksum or length.
    pub section_faults: u64,
    /// How often the clock went back or forward by more than a second without saying so.
    pub clock_jumps: u64,
}

/// Finds one program's media in the bytes of one connection. A scanner knows nothing of other connections; a new one begins
/// with a new scanner. It holds less than 200 kB whatever comes.
#[derive(Debug)]
pub struct Scanner {
    framing: Framing,
    first: Vec<u8>,
    bytes: u64,
    tables: Tables,
    fault: Option<Fault>,
}

impl Default for Scanner {
    fn default() -> Self {
        Scanner::new(Choice::First)
    }
}

impl Scanner {
    /// Nothing was read yet.
    pub fn new(choice: Choice) -> Self {
        Scanner { framing: Framing::default(), first: Vec::new(), bytes: 0, tables: Tables::new(choice), fault: None }
    }

    /// Reads what came in and appends what is ready to `out`, oldest first.
    ///
    /// # Errors
    /// 2 MiB without media, 1 MiB in a row without a packet, or 4 KiB of what is known to be something else. From then on
    /// nothing is read.
    pub fn read(&mut self, mut data: &[u8], out: &mut VecDeque<Segment>) -> Result<(), Fault> {
        if self.first.len() < FIRST {
            self.first.extend_from_slice(&data[..data.len().min(FIRST - self.first.len())]);
        }
        while !data.is_empty() {
            if let Some(fault) = self.fault {
                return Err(fault);
            }
            let step = if self.tables.alive { PIECE } else { STEP };
            let (piece, later) = data.split_at(data.len().min((step - self.bytes % step) as usize));
            data = later;
            self.bytes += piece.len() as u64;
            let tables = &mut self.tables;
            tables.reserve(piece.len());
            self.framing.read(piece, |packet| tables.packet(packet, out));
            tables.flush(out);
            if self.bytes.is_multiple_of(STEP) {
                self.fault = self.judge();
            }
        }
        self.fault.map_or(Ok(()), Err)
    }

    /// What is wrong with all that came so far if nothing more comes; `None` once there was media.
    pub fn fault(&self) -> Option<Fault> {
        if self.fault.is_some() || self.tables.alive {
            return self.fault;
        }
        Some(match self.tables.counts.packets {
            0 if self.bytes == 0 => Fault::Nothing,
            0 => Fault::of(&self.first).unwrap_or(Fault::NoSync),
            _ => self.tables.fault(),
        })
    }

    /// The program, once its map came.
    pub fn program(&self) -> Option<&Arc<Program>> {
        self.tables.program.as_ref()
    }

    /// What it came across so far.
    pub fn counts(&self) -> Scanned {
        Scanned {
            skipped_bytes: self.framing.skipped,
            sync_losses: self.framing.losses,
            section_faults: self.tables.pat.faults + self.tables.pmt.faults + self.tables.former_faults,
            ..self.tables.counts
        }
    }

    fn judge(&self) -> Option<Fault> {
        let foreign = self.tables.counts.packets == 0 && self.bytes >= MAX_FOREIGN;
        if let Some(fault) = Fault::of(&self.first).filter(|_| foreign) {
            return Some(fault);
        }
        if self.framing.skipped_since >= MAX_SKIPPED {
            return Some(Fault::NoSync);
        }
        if self.bytes >= MAX_SILENCE { self.fault() } else { None }
    }
}

/// What a PID carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    Foreign,
    Pat,
    Pmt,
    /// The stream at whose random access points a player starts.
    Lead,
    /// Any other video or audio.
    Media,
    /// Video that does not come, for which audio stands in.
    Absent,
    /// Neither: sections, subtitles, a clock of its own.
    Data,
}

/// Reads packets: which program there is, and where a player can start.
#[derive(Debug)]
struct Tables {
    choice: Choice,
    pat: Sections,
    pmt: Sections,
    former_faults: u64,
    /// Number of the chosen program and the PID of its map.
    chosen: Option<(u16, u16)>,
    associated: bool,
    program: Option<Arc<Program>>,
    roles: Box<[Role]>,
    /// `None` if the program's lead is audio.
    pictures: Option<Pictures>,
    clock: Option<u64>,
    /// The first time of audio since the last packet of the lead.
    alone: Option<u64>,
    /// The last random access point of a program without video.
    mark: Option<u64>,
    pending: Pending,
    candidate: Option<Candidate>,
    /// Kept for its memory.
    head: Vec<u8>,
    /// Whether there was media.
    alive: bool,
    counts: Scanned,
}

/// Packets that did not go out yet.
#[derive(Debug, Default)]
struct Pending {
    data: Vec<u8>,
    /// Where the last packet of video or audio ends. What is behind it waits for the next one, however reads were cut.
    media: usize,
    /// If its first packet of video or audio is a random access point.
    random_access: Option<u64>,
}

/// A picture of which it is not known yet whether decoding can start at it.
#[derive(Debug)]
struct Candidate {
    /// Where its first packet is among the pending ones.
    from: usize,
    /// Where the packet of video or audio before it ends.
    behind: usize,
    /// What the multiplexer says.
    marked: bool,
    pts: Option<u64>,
    /// `None` while the head of its PES packet is not whole.
    inspection: Option<Inspection>,
}

impl Tables {
    fn new(choice: Choice) -> Self {
        let mut tables = Tables {
            choice,
            pat: Sections::default(),
            pmt: Sections::default(),
            former_faults: 0,
            chosen: None,
            associated: false,
            program: None,
            roles: vec![Role::Foreign; PIDS].into(),
            pictures: None,
            clock: None,
            alone: None,
            mark: None,
            pending: Pending::default(),
            candidate: None,
            head: Vec::new(),
            alive: false,
            counts: Scanned::default(),
        };
        tables.assign();
        tables
    }

    fn packet(&mut self, packet: &[u8; PACKET], out: &mut VecDeque<Segment>) {
        self.counts.packets += 1;
        let role = self.roles[usize::from(pid(packet))];
        if packet[1] & 0x80 != 0 {
            self.counts.damaged += 1;
        } else if role == Role::Foreign {
            self.counts.foreign += 1;
        } else if packet[3] & 0xc0 != 0 {
            self.counts.scrambled += 1;
        } else if let Some(head) = Head::read(packet) {
            match role {
                Role::Pat | Role::Pmt => self.table(role, &head, &packet[head.payload..], out),
                // The clock alone may go on without the pictures whose PID it is on.
                Role::Absent if head.payload < PACKET => {
                    self.settle(None, out);
                    self.assign();
                    self.media(Role::Lead, &head, packet, out);
                }
                _ => self.media(role, &head, packet, out),
            }
        } else {
            self.counts.malformed += 1;
        }
    }

    fn table(&mut self, role: Role, head: &Head, payload: &[u8], out: &mut VecDeque<Segment>) {
        if payload.is_empty() {
            return;
        }
        let mut sections = Vec::new();
        if role == Role::Pat {
            self.pat.read(head, payload, &mut sections);
            sections.iter().for_each(|section| self.associate(section));
        } else {
            self.pmt.read(head, payload, &mut sections);
            sections.iter().for_each(|section| self.map(section, out));
        }
    }

    /// Reads a PAT. What was chosen before stays as long as the table names it.
    fn associate(&mut self, section: &[u8]) {
        let Some(programs) = program::programs(section) else { return };
        self.associated = true;
        let wanted = match (self.choice, self.chosen) {
            (Choice::Number(number), _) | (Choice::First, Some((number, _))) => Some(number),
            (Choice::First, None) => None,
        };
        let programs: Vec<_> = programs.collect();
        let named = programs.iter().find(|(number, _)| wanted.is_none_or(|wanted| wanted == *number));
        // A table in several sections names each program in one of them.
        let other = programs.first().filter(|_| self.choice == Choice::First && program::is_alone(section));
        let Some(chosen) = named.or(other) else { return };
        if self.chosen != Some(*chosen) {
            self.chosen = Some(*chosen);
            self.former_faults += self.pmt.faults;
            self.pmt = Sections::default();
            self.assign();
        }
    }

    /// Reads a PMT.
    fn map(&mut self, section: &[u8], out: &mut VecDeque<Segment>) {
        let Some((number, _)) = self.chosen else { return };
        let Some(program) = Program::parse(section, number) else { return };
        if self.program.as_deref() == Some(&program) {
            return;
        }
        self.settle(None, out);
        self.flush(out);
        self.pending = Pending::default();
        self.program = Some(Arc::new(program));
        self.mark = None;
        self.assign();
    }

    /// Gives each PID its role.
    fn assign(&mut self) {
        self.roles.fill(Role::Foreign);
        (self.pictures, self.alone) = (None, None);
        if let Some(program) = &self.program {
            if program.clock != NULL {
                self.roles[usize::from(program.clock)] = Role::Data;
            }
            for stream in &program.streams {
                self.roles[usize::from(stream.pid)] =
                    if stream.kind() == Kind::Data { Role::Data } else { Role::Media };
            }
            if let Some(lead) = program.lead() {
                self.roles[usize::from(lead.pid)] = Role::Lead;
                self.pictures = (lead.kind() == Kind::Video).then(|| Pictures::of(lead));
            }
        }
        self.roles[0] = Role::Pat;
        if let Some((_, pmt)) = self.chosen {
            self.roles[usize::from(pmt)] = Role::Pmt;
        }
    }

    fn media(&mut self, role: Role, head: &Head, packet: &[u8; PACKET], out: &mut VecDeque<Segment>) {
        if let Some(program) = &self.program
            && program.clock == head.pid
            && let Some(pcr) = head.pcr
        {
            let jumped = self.clock.is_some_and(|last| !(0..=90_000).contains(&since(pcr, last)));
            self.counts.clock_jumps += u64::from(jumped && !head.discontinuity);
            self.clock = Some(pcr);
        }
        let payload = &packet[head.payload..];
        let role = self.stand_in(role, head, payload, out);
        if role == Role::Lead && head.starts {
            self.settle(None, out);
            self.head.clear();
            let (from, behind) = (self.pending.data.len(), self.pending.media);
            let marked = head.random_access;
            self.candidate = Some(Candidate { from, behind, marked, pts: None, inspection: None });
        }
        self.pending.data.extend_from_slice(packet);
        if role != Role::Data && !payload.is_empty() {
            self.pending.media = self.pending.data.len();
            self.alive = true;
        } else if self.pending.data.len() - self.pending.media >= MAX_HELD {
            self.counts.foreign += (MAX_HELD / PACKET) as u64;
            self.pending.data.truncate(self.pending.media);
        }
        if role == Role::Lead
            && let Some(candidate) = &mut self.candidate
        {
            self.head.extend_from_slice(payload);
            let found = match self.pictures {
                Some(pictures) => candidate.look(pictures, &self.head),
                None => candidate.listen(&self.head, self.mark),
            };
            if let Some(start) = found {
                self.settle(Some(start), out);
            }
        }
        let held = self.candidate.as_ref().map_or(0, |candidate| self.pending.data.len() - candidate.from);
        if held >= MAX_HELD || (held > 0 && self.head.len() >= MAX_HEAD) {
            self.settle(None, out);
        }
    }

    /// The role of a packet's stream now that it came: audio leads where video does not come.
    fn stand_in(&mut self, role: Role, head: &Head, payload: &[u8], out: &mut VecDeque<Segment>) -> Role {
        if role == Role::Lead {
            if !payload.is_empty() {
                self.alone = None;
            }
        } else if role == Role::Media
            && head.starts
            && self.pictures.is_some()
            && let Pes::Head(PesHead { pts: Some(pts), .. }) = Pes::read(payload)
            && since(pts, *self.alone.get_or_insert(pts)) >= PATIENCE
            && let Some(lead) = self.program.as_ref().and_then(|program| Some(program.lead()?.pid))
        {
            self.settle(None, out);
            self.roles[usize::from(lead)] = Role::Absent;
            self.roles[usize::from(head.pid)] = Role::Lead;
            self.pictures = None;
            return Role::Lead;
        }
        role
    }

    /// Ends the search for what the candidate is; without a finding the multiplexer's mark counts.
    fn settle(&mut self, found: Option<Start>, out: &mut VecDeque<Segment>) {
        let Some(Candidate { behind, marked, pts, .. }) = self.candidate.take() else { return };
        let found = found.unwrap_or(Start::Unknown);
        let random_access = found == Start::RandomAccess || (found == Start::Unknown && marked);
        let Some(pts) = pts.filter(|_| random_access) else { return };
        self.mark = Some(pts);
        // What belongs to no picture or sound stays where it is: a clock that stands before a picture has counted before it.
        self.emit(behind, out);
        self.pending.random_access = Some(pts);
    }

    /// Everything goes out that waits for nothing.
    fn flush(&mut self, out: &mut VecDeque<Segment>) {
        let Some(candidate) = &mut self.candidate else { return self.emit(self.pending.media, out) };
        let behind = std::mem::take(&mut candidate.behind);
        candidate.from -= behind;
        self.emit(behind, out);
    }

    /// What is pending before `until` goes out, if anything is.
    fn emit(&mut self, until: usize, out: &mut VecDeque<Segment>) {
        let Some(program) = self.program.as_ref().filter(|_| until > 0) else { return };
        let media = self.pending.media - until;
        let rest = self.pending.data.split_off(until);
        let sent = std::mem::replace(&mut self.pending, Pending { data: rest, media, random_access: None });
        let Pending { mut data, random_access, .. } = sent;
        if data.len() < data.capacity() / 2 {
            // It is kept for as long as the slowest viewer needs it.
            data.shrink_to_fit();
        }
        out.push_back(Segment { data, random_access, program: Arc::clone(program) });
    }

    fn reserve(&mut self, bytes: usize) {
        if self.program.is_some() {
            self.pending.data.reserve(bytes + PACKET);
        }
    }

    fn fault(&self) -> Fault {
        match (&self.program, self.chosen, self.choice) {
            (Some(program), ..) if program.lead().is_none() => Fault::NoMedia { program: program.number },
            (Some(program), ..) if self.counts.scrambled > 0 => Fault::Scrambled { program: program.number },
            (Some(program), ..) => Fault::Empty { program: program.number },
            (None, Some((program, _)), _) => Fault::NoPmt { program },
            (None, None, Choice::Number(number)) if self.associated => Fault::NoProgram { number },
            (None, None, _) => Fault::NoPat,
        }
    }
}

impl Candidate {
    /// `None` while it takes more of the picture's first bytes.
    fn look(&mut self, pictures: Pictures, head: &[u8]) -> Option<Start> {
        let inspection = match &mut self.inspection {
            Some(inspection) => inspection,
            none => match Pes::read(head) {
                Pes::Head(pes) => {
                    self.pts = pes.pts;
                    none.insert(Inspection::new(pictures, pes.payload))
                }
                Pes::More => return None,
                Pes::Other => return Some(Start::Other),
            },
        };
        if pictures == Pictures::Opaque {
            return Some(Start::Unknown);
        }
        Some(inspection.look(head)).filter(|start| *start != Start::Unknown)
    }

    /// The same where any frame is as good as another one, and `mark` was the last start.
    fn listen(&mut self, head: &[u8], mark: Option<u64>) -> Option<Start> {
        let Pes::Head(pes) = Pes::read(head) else {
            return (Pes::read(head) == Pes::Other).then_some(Start::Other);
        };
        self.pts = pes.pts;
        let apart = |pts| mark.is_none_or(|mark| since(pts, mark).unsigned_abs() >= AUDIO_INTERVAL);
        Some(if pes.pts.is_some_and(apart) { Start::RandomAccess } else { Start::Other })
    }
}

const _: () = assert!(MAX_FOREIGN.is_multiple_of(STEP) && PIECE.is_multiple_of(STEP));
