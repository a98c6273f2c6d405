//! Libraries of this machine: looked through again and again, and what became of that.

use holdfast_core::input::Note;
use holdfast_core::time::Time;

use super::{Action, Server};
use crate::library::{INTERVAL, Libraries, Scan};

/// What is on this machine, and when somebody looks again.
pub(super) struct Shelves {
    libraries: Libraries,
    /// `NEVER` while somebody looks, and where there is nothing to look through.
    due: Time,
    /// How each library stands.
    states: Vec<Looked>,
}

/// What became of looking through a library.
#[derive(Clone, Default)]
pub(crate) struct Looked {
    /// What was said of it last.
    said: Option<Said>,
    /// When it was last looked through.
    pub read: Option<Time>,
    /// Why it could not be, the last time that was tried.
    pub fault: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Said {
    Files { files: usize, unnamed: u64, empty: u64 },
    Failed,
}

impl Shelves {
    pub fn new(libraries: Libraries) -> Self {
        let count = libraries.all().len();
        Shelves {
            libraries,
            due: if count == 0 { Time::NEVER } else { Time::ZERO },
            states: vec![Looked::default(); count],
        }
    }

    pub fn deadline(&self) -> Option<Time> {
        Some(self.due).filter(|due| *due != Time::NEVER)
    }
}

impl Server {
    /// Films and series of this machine.
    pub(crate) fn libraries(&self) -> &Libraries {
        &self.shelves.libraries
    }

    /// How each library stands, in the order of the configuration.
    pub(crate) fn library_states(&self) -> &[Looked] {
        &self.shelves.states
    }

    /// Has libraries looked through when it is time.
    pub(super) fn look_through(&mut self, now: Time) {
        if self.shelves.due <= now {
            self.shelves.due = Time::NEVER;
            self.actions.push_back(Action::Scan(self.shelves.libraries.all().clone()));
        }
    }

    /// Libraries were looked through.
    pub fn scanned(&mut self, now: Time, scan: &Scan) {
        self.shelves.libraries.replace(scan);
        self.shelves.due = now + INTERVAL;
        for place in 0..self.shelves.states.len() {
            let Some(library) = self.shelves.libraries.all().get(place).map(|library| library.name.clone()) else {
                continue;
            };
            let fault = scan.failed.iter().find(|(own, _)| *own == place).map(|(_, why)| why.clone());
            let files = self.shelves.libraries.count(place);
            let of = |all: &[(usize, u64)]| all.iter().find(|(own, _)| *own == place).map_or(0, |(_, count)| *count);
            let (unnamed, empty) = (of(&scan.unnamed), of(&scan.empty));
            let said = if fault.is_some() { Said::Failed } else { Said::Files { files, unnamed, empty } };
            let state = &mut self.shelves.states[place];
            state.fault.clone_from(&fault);
            if fault.is_none() {
                state.read = Some(now);
            }
            if state.said.replace(said) == Some(said) {
                continue;
            }
            let note = match fault {
                Some(why) => Note::LibraryFault { library, why, kept: files as u64 },
                None => Note::LibraryRead { library, files: files as u64, unnamed, empty, cut_short: scan.cut_short },
            };
            self.tell(now, note);
        }
    }
}
