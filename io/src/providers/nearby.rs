//! What in a list would be refused, for whoever checks a configuration before anything is fetched.

use std::io::Read;

use url::Url;

use super::store::{Catalogue, Context};
use super::unpacking::Unpacking;
use super::{Reach, m3u};

/// How many entries of a list lead to private addresses or to this machine, as far as that shows in their words, and to which host
/// the first does; `None` if none does, or if the list cannot be read. Of the list the same is taken as of a provider with these
/// `groups` and `entries`, and no more than so many `bytes` are read.
pub fn near_entries(list: impl Read, groups: &[String], entries: usize, bytes: u64) -> Option<(usize, String)> {
    let (mut reader, mut catalogue, mut unpacking) =
        (m3u::Reader::default(), Catalogue::default(), Unpacking::default());
    let cx = Context { taken: &|_, _| false, groups, entries };
    let (mut list, mut buffer, mut unpacked) = (list.take(bytes), vec![0; 1 << 16], 0);
    loop {
        let count = list.read(&mut buffer).ok()?;
        if count == 0 {
            break;
        }
        let mut left = &buffer[..count];
        while !left.is_empty() {
            let taken = unpacking.push(left, |plain| {
                unpacked += plain.len() as u64;
                reader.push(plain, &mut catalogue, &cx);
                if unpacked > bytes.saturating_mul(8) { Err("it is too large") } else { Ok(()) }
            });
            left = &left[taken.ok()?..];
        }
    }
    unpacking
        .finish(|plain| {
            reader.push(plain, &mut catalogue, &cx);
            Ok::<(), &'static str>(())
        })
        .ok()?;
    reader.finish(&mut catalogue, &cx);
    let urls = (0..catalogue.len()).filter_map(|place| Url::parse(&catalogue.addresses(place)[0]).ok());
    let mut near = urls.filter(|url| Reach::to_url(url) > Reach::Public);
    let first = near.next()?.host_str().unwrap_or_default().to_owned();
    Some((1 + near.count(), first))
}
