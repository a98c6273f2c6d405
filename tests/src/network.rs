//! A network namespace with two ways to the edge, for a publisher that changes from one to the other.

use std::net::Ipv4Addr;
use std::process::Command;

use crate::prepared;

/// One of the two ways.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// The one that is up at the start.
    First,
    /// The one to change to.
    Second,
}

/// A namespace, its two pairs of interfaces, and the address of the edge outside. All go when this is dropped.
pub struct TwoWays {
    name: String,
}

impl TwoWays {
    /// The address the edge has outside, reached over both ways.
    pub const EDGE: Ipv4Addr = Ipv4Addr::new(10, 213, 9, 1);

    /// Makes the namespace, with its first way up.
    ///
    /// # Panics
    /// Without the right to make namespaces.
    pub fn new() -> TwoWays {
        let ways = TwoWays { name: format!("hf{}", std::process::id()) };
        let name = &ways.name;
        ip(&format!("netns add {name}"));
        ip(&format!("-n {name} link set lo up"));
        for (letter, net) in [("a", 1), ("b", 2)] {
            ip(&format!("link add {name}{letter} type veth peer name {letter}0 netns {name}"));
            ip(&format!("addr add 10.213.{net}.1/24 dev {name}{letter}"));
            ip(&format!("link set {name}{letter} up"));
            ip(&format!("-n {name} addr add 10.213.{net}.2/24 dev {letter}0"));
        }
        // The edge's own address lives on the outer end of the first pair; Linux answers for it on either.
        ip(&format!("addr add {}/32 dev {name}a", TwoWays::EDGE));
        ways.up(Way::First);
        ways
    }

    fn letter(way: Way) -> (&'static str, u8) {
        match way {
            Way::First => ("a", 1),
            Way::Second => ("b", 2),
        }
    }

    /// Brings a way up, with the route to everywhere.
    pub fn up(&self, way: Way) {
        let (letter, net) = TwoWays::letter(way);
        ip(&format!("-n {} link set {letter}0 up", self.name));
        ip(&format!("-n {} route replace default via 10.213.{net}.1 dev {letter}0", self.name));
    }

    /// Takes a way down: its address is dead from now on.
    pub fn down(&self, way: Way) {
        let (letter, _) = TwoWays::letter(way);
        ip(&format!("-n {} link set {letter}0 down", self.name));
    }

    /// A command that runs `program` inside.
    pub fn inside(&self, program: &std::path::Path) -> Command {
        let mut command = prepared::tool("ip");
        command.args(["netns", "exec", &self.name]).arg(program);
        command
    }
}

impl Default for TwoWays {
    fn default() -> TwoWays {
        TwoWays::new()
    }
}

impl Drop for TwoWays {
    fn drop(&mut self) {
        for command in
            [format!("link del {}a", self.name), format!("link del {}b", self.name), format!("netns del {}", self.name)]
        {
            let _ = Command::new("ip").args(command.split(' ')).status();
        }
    }
}

fn ip(arguments: &str) {
    let output = prepared::tool("ip").args(arguments.split(' ')).output().expect("ip runs");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "ip {arguments}: {said}(network namespaces need root: sudo tests/run)");
}
