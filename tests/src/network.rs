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

/// A namespace for the publisher, a router with two ways to it, and one link from the router to the edge outside.
///
/// The router is needed since libnice pins what it sends to the interface that has its address. All of it goes when this is
/// dropped.
pub struct TwoWays {
    publisher: String,
    router: String,
}

impl TwoWays {
    /// The address the edge has outside, reached over both ways.
    pub const EDGE: Ipv4Addr = Ipv4Addr::new(10, 213, 9, 1);

    /// Makes the namespaces, with the first way up.
    ///
    /// # Panics
    /// Without the right to make namespaces.
    pub fn new() -> TwoWays {
        let name = format!("hf{}", std::process::id());
        let ways = TwoWays { publisher: format!("{name}p"), router: format!("{name}r") };
        let TwoWays { publisher, router } = &ways;
        for namespace in [publisher, router] {
            ip(&format!("netns add {namespace}"));
            ip(&format!("-n {namespace} link set lo up"));
        }
        for (link, net) in [("way1", 1), ("way2", 2)] {
            ip(&format!("-n {router} link add {link} type veth peer name {link} netns {publisher}"));
            ip(&format!("-n {router} addr add 10.213.{net}.1/24 dev {link}"));
            ip(&format!("-n {router} link set {link} up"));
        }
        ip(&format!("link add {name} type veth peer name out netns {router}"));
        ip(&format!("addr add {}/24 dev {name}", TwoWays::EDGE));
        ip(&format!("link set {name} up"));
        ip(&format!("-n {router} addr add 10.213.9.254/24 dev out"));
        ip(&format!("-n {router} link set out up"));
        ip(&format!("route add 10.213.0.0/16 via 10.213.9.254 dev {name}"));
        run(exec(router).args(["sh", "-c", "echo 1 >/proc/sys/net/ipv4/ip_forward"]));
        ways.up(Way::First);
        ways
    }

    fn link(way: Way) -> (&'static str, u8) {
        match way {
            Way::First => ("way1", 1),
            Way::Second => ("way2", 2),
        }
    }

    /// Brings a way up, with the route to everywhere.
    pub fn up(&self, way: Way) {
        let (link, net) = TwoWays::link(way);
        ip(&format!("-n {} addr add 10.213.{net}.2/24 dev {link}", self.publisher));
        ip(&format!("-n {} link set {link} up", self.publisher));
        ip(&format!("-n {} route replace default via 10.213.{net}.1 dev {link}", self.publisher));
    }

    /// Takes a way down: its address is gone, as when a telephone leaves a wireless network.
    pub fn down(&self, way: Way) {
        let (link, _) = TwoWays::link(way);
        ip(&format!("-n {} addr flush dev {link}", self.publisher));
        ip(&format!("-n {} link set {link} down", self.publisher));
    }

    /// A command that runs `program` where the publisher is.
    pub fn inside(&self, program: &std::path::Path) -> Command {
        let mut command = exec(&self.publisher);
        command.arg(program);
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
        // The interface outside goes at once, so that the next may be called so; the kernel takes the others in its own time.
        let _ = Command::new("ip").args(["link", "del", self.publisher.trim_end_matches('p')]).status();
        for namespace in [&self.publisher, &self.router] {
            let _ = Command::new("ip").args(["netns", "del", namespace]).status();
        }
    }
}

fn exec(namespace: &str) -> Command {
    let mut command = prepared::tool("ip");
    command.args(["netns", "exec", namespace]);
    command
}

fn ip(arguments: &str) {
    run(prepared::tool("ip").args(arguments.split(' ')));
}

fn run(command: &mut Command) {
    let output = command.output().expect("ip runs");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{command:?}: {said}(network namespaces need root: sudo tests/run)");
}

/// A namespace for an origin, with one link to the edge outside, which fails as the test wants it to.
pub struct Apart {
    name: String,
}

impl Apart {
    /// The address inside.
    pub const INSIDE: Ipv4Addr = Ipv4Addr::new(10, 214, 9, 2);
    /// That of the link outside.
    pub const OUTSIDE: Ipv4Addr = Ipv4Addr::new(10, 214, 9, 1);

    /// Makes the namespace, with its link up.
    ///
    /// # Panics
    /// Without the right to make namespaces.
    pub fn new() -> Apart {
        let apart = Apart { name: format!("hf{}o", std::process::id()) };
        let name = &apart.name;
        ip(&format!("netns add {name}"));
        ip(&format!("-n {name} link set lo up"));
        ip(&format!("link add {name} type veth peer name way netns {name}"));
        ip(&format!("addr add {}/24 dev {name}", Apart::OUTSIDE));
        ip(&format!("link set {name} up"));
        ip(&format!("-n {name} addr add {}/24 dev way", Apart::INSIDE));
        ip(&format!("-n {name} link set way up"));
        apart
    }

    /// Takes the link down, or up again.
    pub fn link(&self, state: Link) {
        let state = if state == Link::Up { "up" } else { "down" };
        ip(&format!("-n {} link set way {state}", self.name));
    }

    /// Packets of both directions vanish without a word, or arrive again.
    pub fn packets(&self, state: Link) {
        let name = &self.name;
        if state == Link::Down {
            // To an address on the link that nobody has.
            ip(&format!("neigh replace {} lladdr 02:00:00:00:00:01 dev {name} nud permanent", Apart::INSIDE));
            ip(&format!("-n {name} neigh replace {} lladdr 02:00:00:00:00:01 dev way nud permanent", Apart::OUTSIDE));
        } else {
            ip(&format!("neigh del {} dev {name}", Apart::INSIDE));
            ip(&format!("-n {name} neigh del {} dev way", Apart::OUTSIDE));
        }
    }

    /// A command that runs `program` inside.
    pub fn inside(&self, program: &std::path::Path) -> Command {
        let mut command = exec(&self.name);
        command.arg(program);
        command
    }
}

/// Whether something gets through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Link {
    /// It does.
    Up,
    /// It does not.
    Down,
}

impl Default for Apart {
    fn default() -> Apart {
        Apart::new()
    }
}

impl Drop for Apart {
    fn drop(&mut self) {
        // Not left to the kernel, which takes its time: the next one may be called so.
        let _ = Command::new("ip").args(["link", "del", &self.name]).status();
        let _ = Command::new("ip").args(["netns", "del", &self.name]).status();
    }
}
