//! Is this stream one of our own?

use std::fmt;

/// One running program, by a random number that it draws when it starts.
///
/// A description names where its stream comes from (`originStreamUUID`). What an instance serves under its own name, and
/// gets described by somebody else, came back in a circle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Instance(pub u128);

impl Instance {
    /// The name that this instance gives to a stream it is the source of. A stream that was fetched keeps the name it came
    /// with, so that a longer circle is noticed as well.
    pub fn name(self, app: &str, stream: &str) -> String {
        format!("{self}/{app}/{stream}")
    }

    /// Whether this instance gave that name.
    pub fn named(self, uuid: &str) -> bool {
        let own = self.to_string();
        uuid.strip_prefix(&own).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }
}

impl fmt::Display for Instance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let n = self.0;
        let group = |shift: u32, mask: u128| n >> shift & mask;
        write!(f, "{:08x}-{:04x}-", group(96, 0xffff_ffff), group(80, 0xffff))?;
        write!(f, "{:04x}-{:04x}-{:012x}", group(64, 0xffff), group(48, 0xffff), group(0, 0xffff_ffff_ffff))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instance_knows_the_names_it_gave_and_no_others() {
        let ours = Instance(0x0123_4567_89ab_cdef_0011_2233_4455_6677);
        let name = ours.name("#default#live", "one");
        assert_eq!(name, "01234567-89ab-cdef-0011-223344556677/#default#live/one");
        assert!(ours.named(&name));
        assert!(ours.named("01234567-89ab-cdef-0011-223344556677"));
        for other in ["", "01234567-89ab-cdef-0011-2233445566770/a/b", &name[1..], &name[..35]] {
            assert!(!ours.named(other), "{other}");
        }
        assert!(!Instance(1).named(&name));
    }
}
