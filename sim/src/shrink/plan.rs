//! Which faults, which actors and how long a storm a failure takes: the world is run again and again with less.

use std::fmt;
use std::time::Duration;

use super::Patience;
use super::Size;
use super::less::{Tried, less};
use super::quiet::quietly;
use crate::world::chance::Fault;
use crate::world::options::{Actor, Faults, Options};
use crate::world::random::{cast, play_with};

/// The least that is needed.
pub(super) struct Least {
    pub options: Options,
    pub before: Size,
    pub after: Size,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Fault(Fault),
    Actor(Actor),
}

fn chosen(parts: &[Part], options: &Options) -> Options {
    let faults = parts.iter().filter_map(|part| match part {
        Part::Fault(fault) => Some(*fault),
        Part::Actor(_) => None,
    });
    let cast = parts.iter().filter_map(|part| match part {
        Part::Actor(actor) => Some(*actor),
        Part::Fault(_) => None,
    });
    Options { faults: Faults::only(faults), cast: Some(cast.collect()), ..options.clone() }
}

fn size(parts: &[Part]) -> Size {
    let faults = parts.iter().filter(|part| matches!(part, Part::Fault(_))).count();
    Size { faults, actors: parts.len() - faults }
}

/// What breaks, if anything does.
fn broken(seed: u64, options: &Options) -> Option<&'static str> {
    match quietly(|| play_with(seed, options, None)) {
        Ok(Ok(_)) => None,
        Ok(Err((_, broken))) => Some(broken.id),
        Err(_) => Some("panic"),
    }
}

/// The least that breaks `id` with this seed.
pub(super) fn least(
    seed: u64,
    options: &Options,
    id: &'static str,
    patience: Patience,
    progress: &mut impl FnMut(fmt::Arguments<'_>),
) -> Least {
    let (faults, actors) = cast(seed, options);
    let all: Vec<Part> = faults.into_iter().map(Part::Fault).chain(actors.into_iter().map(Part::Actor)).collect();
    let before = size(&all);
    let (mut runs, mut count) = (0, all.len());
    // Chosen by name, a run must still be the same.
    let all_chosen = chosen(&all, options);
    if broken(seed, &all_chosen) != Some(id) {
        progress(format_args!("{id} is not broken again by the faults and actors that the seed has, chosen by name"));
        return Least { options: options.clone(), before, after: before };
    }
    let parts = less(all, |rest| {
        if patience.is_over() {
            return Tried::NoTime;
        }
        runs += 1;
        let fails = broken(seed, &chosen(rest, options)) == Some(id);
        if fails && rest.len() * 2 < count {
            count = rest.len();
            let Size { faults, actors } = size(rest);
            progress(format_args!(
                "{faults} of {} faults and {actors} of {} actors are left",
                before.faults, before.actors
            ));
        }
        if fails { Tried::Fails(rest.to_vec()) } else { Tried::Holds }
    });
    let mut options = chosen(&parts, options);
    // The storm: as short as it may be, in steps of a tenth.
    let mut storm = options.storm.unwrap_or(Duration::from_secs(60));
    for tenths in [1, 2, 5, 8, 9] {
        loop {
            let shorter = Duration::from_millis((storm * tenths / 10).as_millis() as u64);
            let less = Options { storm: Some(shorter), ..options.clone() };
            if shorter >= storm || patience.is_over() || broken(seed, &less) != Some(id) {
                break;
            }
            (storm, options) = (shorter, less);
        }
    }
    let after = size(&parts);
    progress(format_args!(
        "{} of {} faults and {} of {} actors are left after {runs} runs",
        after.faults, before.faults, after.actors, before.actors
    ));
    Least { options, before, after }
}
