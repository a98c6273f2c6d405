//! The page: one file that holds everything it needs and asks nobody for anything.
//!
//! What happened lies in it as JSON with columns: most of a large story is numbers. Whoever has no JavaScript gets tables of the
//! slots' tenancies and of what was decided.

use std::fmt::Write as _;

use holdfast_core::time::Time;

use super::lanes::{Group, Lane, Mark, Span, State, Weight};
use super::{Clock, Story, weight};

const PAGE: &str = include_str!("page.html");
const STYLE: &str = include_str!("page.css");
const SCRIPT: [&str; 4] =
    [include_str!("story.js"), include_str!("draw.js"), include_str!("list.js"), include_str!("page.js")];

/// Rows of the tables for those without JavaScript.
const ROWS: usize = 500;

/// Writes a story as a page.
pub fn page(story: &Story) -> String {
    let mut parts = PAGE.split("{{");
    let mut out = String::from(parts.next().unwrap_or_default());
    for part in parts {
        let (name, rest) = part.split_once("}}").unwrap_or((part, ""));
        match name {
            "title" => out.push_str(&text(&story.title)),
            "style" => out.push_str(STYLE),
            "script" => SCRIPT.iter().for_each(|script| out.push_str(script)),
            "data" => data(story, &mut out),
            "summary" => summary(story, &mut out),
            _ => {}
        }
        out.push_str(rest);
    }
    out
}

/// As text in HTML.
fn text(of: &str) -> String {
    let mut out = String::with_capacity(of.len());
    for letter in of.chars() {
        match letter {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            // What no page may hold, or what turns the rest of a line around.
            '\0'..='\x1f' | '\x7f' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => out.push('\u{fffd}'),
            letter => out.push(letter),
        }
    }
    out
}

/// As a string in JSON that lies in a page: nothing in it ends the element around it.
fn json(of: &str) -> String {
    serde_json::to_string(of).unwrap_or_else(|_| String::from("\"\"")).replace('<', "\\u003c")
}

fn list<T>(out: &mut String, items: impl IntoIterator<Item = T>, mut each: impl FnMut(&mut String, T)) {
    out.push('[');
    for (number, item) in items.into_iter().enumerate() {
        if number > 0 {
            out.push(',');
        }
        each(out, item);
    }
    out.push(']');
}

fn data(story: &Story, out: &mut String) {
    let micros = |at: Time| at.since(story.begin).as_micros();
    // From where the page counts, and the time of the day then.
    let (begin, day) = match story.clock {
        Clock::Run => (story.begin.as_micros(), None),
        Clock::Edge(started) => (0, started.map(|started| started.saturating_add(story.begin.as_micros()))),
    };
    let edge = u8::from(story.clock != Clock::Run);
    let _ = write!(out, "{{\"title\":{},\"begin\":{begin},\"edge\":{edge},\"day\":", json(&story.title));
    match day {
        Some(day) => _ = write!(out, "{day},"),
        None => out.push_str("null,"),
    }
    let _ = write!(out, "\"length\":{},\"calls\":{},\"broken\":", micros(story.end), story.calls);
    match &story.broken {
        Some(broken) => {
            let call = broken.call.unwrap_or_default();
            let _ = write!(out, "[{},{},{},{call}]", micros(broken.at), json(&broken.id), json(&broken.what));
        }
        None => out.push_str("null"),
    }
    out.push_str(",\"groups\":");
    list(out, Group::ALL, |out, group| out.push_str(&json(group.as_str())));
    out.push_str(",\"states\":");
    list(out, State::ALL, |out, state| {
        let _ = write!(out, "[{},{}]", json(state.as_str()), json(state.says()));
    });
    out.push_str(",\"texts\":");
    list(out, story.texts.all(), |out, text| out.push_str(&json(text)));
    out.push_str(",\"lanes\":");
    list(out, &story.lanes, |out, lane| of_lane(story, lane, out));
    out.push('}');
}

/// Spans as start since the start before, length, state, who, why; marks as time since the one before, weight, word, why, call.
fn of_lane(story: &Story, lane: &Lane, out: &mut String) {
    let _ = write!(out, "[{},{},", lane.group as usize, json(&lane.name));
    let mut before = story.begin;
    list(out, &lane.spans, |out, span: &Span| {
        let (after, lasts) = (span.from.since(before).as_micros(), span.to.since(span.from).as_micros());
        let _ = write!(out, "{after},{lasts},{},{},{}", span.state as usize, span.who.0, span.why.0);
        before = span.from;
    });
    out.push(',');
    let mut before = story.begin;
    list(out, &lane.marks, |out, mark: &Mark| {
        let after = mark.at.since(before).as_micros();
        let _ = write!(out, "{after},{},{},{},{}", mark.weight as usize, mark.word.0, mark.why.0, mark.call);
        before = before.max(mark.at);
    });
    out.push(']');
}

/// When, as a trace or `holdfast replay` says it.
fn when(story: &Story, at: Time) -> String {
    let started = match story.clock {
        Clock::Run => return format!("{at:?}"),
        Clock::Edge(started) => started,
    };
    let since = at.since(story.begin);
    let since = format!("+{}.{:06}s", since.as_secs(), since.subsec_micros());
    let Some(started) = started else { return since };
    let millis = started.saturating_add(at.as_micros()) / 1000;
    let (seconds, minutes) = (millis / 1000, millis / 60_000);
    format!("{:02}:{:02}:{:02}.{:03} {since}", minutes / 60 % 24, minutes % 60, seconds % 60, millis % 1000)
}

fn summary(story: &Story, out: &mut String) {
    let lasted = weight::span(story.end.since(story.begin));
    let _ = write!(out, "<p>{} calls in {lasted}.</p>", story.calls);
    if let Some(broken) = &story.broken {
        let (id, at, what) = (text(&broken.id), when(story, broken.at), text(&broken.what));
        let call = broken.call.map(|call| format!(", call {call}")).unwrap_or_default();
        let _ = write!(out, "<p class=\"broken\"><strong>{id}</strong> is broken at {at}{call}: {what}</p>");
    }
    slots(story, out);
    decisions(story, out);
    out.push_str("<h3>How much there is</h3><table><thead><tr><th>What<th>Lanes<th>Spans<th>Marks</thead><tbody>");
    for group in Group::ALL {
        let own = || story.lanes.iter().filter(|lane| lane.group == group);
        let (spans, marks): (usize, usize) =
            (own().map(|lane| lane.spans.len()).sum(), own().map(|lane| lane.marks.len()).sum());
        if own().next().is_some() {
            let _ = write!(out, "<tr><td>{}<td>{}<td>{spans}<td>{marks}", group.as_str(), own().count());
        }
    }
    out.push_str("</tbody></table>");
}

fn slots(story: &Story, out: &mut String) {
    // Spans of one tenancy follow one another.
    let tenancies = |lane: &Lane| {
        let mut rows: Vec<(Span, Vec<State>)> = Vec::new();
        for span in &lane.spans {
            match rows.last_mut().filter(|(last, _)| last.who == span.who && last.to == span.from) {
                Some((last, states)) => {
                    last.to = span.to;
                    // Why it was lost, not that it was cleaned up after.
                    if states.last() != Some(&State::Closing) && span.why.0 != 0 && span.state != State::Closing {
                        last.why = span.why;
                    }
                    states.push(span.state);
                }
                None => rows.push((*span, vec![span.state])),
            }
        }
        rows
    };
    let own = story.lanes.iter().filter(|lane| lane.group == Group::Endpoints && !lane.spans.is_empty());
    let rows: Vec<(&Lane, Span)> =
        own.flat_map(|lane| tenancies(lane).into_iter().map(move |(span, _)| (lane, span))).collect();
    if rows.is_empty() {
        return;
    }
    let head =
        "<h3>Who held which slot</h3><table><thead><tr><th>Slot<th>Who<th>From<th>Until<th>How it ended</thead><tbody>";
    out.push_str(head);
    for (lane, span) in rows.iter().take(ROWS) {
        let (from, to) = (when(story, span.from), when(story, span.to));
        let (name, who, why) = (text(&lane.name), text(story.texts.of(span.who)), text(story.texts.of(span.why)));
        let _ = write!(out, "<tr><td>{name}<td>{who}<td>{from}<td>{to}<td>{why}");
    }
    out.push_str("</tbody></table>");
    more(rows.len(), out);
}

fn decisions(story: &Story, out: &mut String) {
    let mut marks: Vec<(&Lane, &Mark)> =
        story.lanes.iter().flat_map(|lane| lane.marks.iter().map(move |mark| (lane, mark))).collect();
    marks.retain(|(_, mark)| mark.weight >= Weight::Notice);
    marks.sort_by_key(|(_, mark)| mark.at);
    if marks.is_empty() {
        return;
    }
    out.push_str("<h3>What somebody lost or did not get</h3>");
    out.push_str("<table><thead><tr><th>When<th>Call<th>Where<th>What<th>Why</thead><tbody>");
    for (lane, mark) in marks.iter().take(ROWS) {
        let (at, call, name) = (when(story, mark.at), mark.call, text(&lane.name));
        let (word, why) = (text(story.texts.of(mark.word)), text(story.texts.of(mark.why)));
        let _ = write!(out, "<tr><td>{at}<td>#{call}<td>{name}<td>{word}<td>{why}");
    }
    out.push_str("</tbody></table>");
    more(marks.len(), out);
}

fn more(rows: usize, out: &mut String) {
    if rows > ROWS {
        let _ = write!(out, "<p>{} more are not in this table.</p>", rows - ROWS);
    }
}
