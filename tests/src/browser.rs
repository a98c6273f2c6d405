//! Headless Chromium, driven over DevTools.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::prepared;
use crate::process::Process;

/// How long a page may take for one order.
const LIMIT: Duration = Duration::from_secs(40);

/// A running Chromium with one tab.
pub struct Browser {
    process: Process,
    origin: String,
    orders: u64,
}

impl Browser {
    /// Starts one with a camera and a microphone that are not real, and asks nobody whether they may be used.
    pub fn start() -> Browser {
        Browser::start_by(Command::new(prepared::python()), None)
    }

    /// Starts one through `command`, which ends in a Python; `secure` is an origin it shall take for a secure one.
    pub fn start_by(mut command: Command, secure: Option<&str>) -> Browser {
        command.arg(prepared::client("browser.py")).arg("--modules").arg(prepared::node_modules());
        if let Some(origin) = secure {
            command.args(["--secure", origin]);
        }
        let process = Process::start("chromium", command);
        let (_, ready) = process.event("ready", LIMIT);
        let origin = ready["origin"].as_str().expect("the driver says its origin").to_owned();
        Browser { process, origin, orders: 0 }
    }

    fn order(&mut self, mut order: Value) -> Result<Value, String> {
        self.orders += 1;
        order["id"] = json!(self.orders);
        self.process.tell(&order.to_string());
        let number = self.orders;
        self.process.find(&format!("answer to {order}"), LIMIT, |line| {
            let answer = line.json();
            (answer["id"] == number).then(|| match answer.get("error") {
                Some(error) => Err(error.as_str().unwrap_or_default().to_owned()),
                None => Ok(answer["value"].clone()),
            })
        })
    }

    /// Loads a page.
    ///
    /// # Panics
    /// When it cannot be loaded.
    pub fn open(&mut self, url: &str) {
        self.order(json!({"do": "open", "url": url})).unwrap_or_else(|error| panic!("{url}: {error}"));
    }

    /// Loads the client page of npm's whip-whep, from another origin than the edge's.
    pub fn open_whip_whep(&mut self) {
        self.open_page("whip_whep.html");
        self.until("whip-whep's module", LIMIT, "typeof window.publish === 'function'");
    }

    /// Loads a page of `tests/clients`, from another origin than the edge's.
    pub fn open_page(&mut self, name: &str) {
        let url = format!("{}/{name}", self.origin);
        self.open(&url);
    }

    /// The value of an expression, awaited if it is a promise.
    ///
    /// # Errors
    /// What it threw.
    pub fn evaluate(&mut self, js: &str) -> Result<Value, String> {
        self.order(json!({"do": "eval", "js": js}))
    }

    /// The value of an expression that may not throw.
    ///
    /// # Panics
    /// When it does.
    pub fn value(&mut self, js: &str) -> Value {
        self.evaluate(js).unwrap_or_else(|error| panic!("{js}: {error}"))
    }

    /// Waits until an expression is true.
    ///
    /// # Panics
    /// After `limit`.
    pub fn until(&mut self, what: &str, limit: Duration, js: &str) {
        crate::eventually(what, limit, || (self.evaluate(js) == Ok(Value::Bool(true))).then_some(()));
    }

    /// Takes a picture of the page.
    ///
    /// # Panics
    /// When it cannot be written.
    pub fn picture(&mut self, path: &Path) {
        self.order(json!({"do": "shot", "path": path})).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    }

    /// Calls DevTools itself: a mouse that is moved, a window of another size.
    ///
    /// # Panics
    /// When it refuses.
    pub fn call(&mut self, method: &str, params: Value) -> Value {
        let order = json!({"do": "call", "method": method, "params": params});
        self.order(order).unwrap_or_else(|error| panic!("{method}: {error}"))
    }

    /// What the pages have said on their console so far, errors of the browser about them among it.
    pub fn console(&self) -> Vec<String> {
        let said = self.process.lines().into_iter().filter(|line| line.json()["event"] == "console");
        said.map(|line| line.text).collect()
    }

    /// SIGSTOP to all of it.
    pub fn freeze(&self) {
        self.process.signal(Signal::STOP);
    }

    /// SIGCONT to all of it.
    pub fn thaw(&self) {
        self.process.signal(Signal::CONT);
    }

    /// SIGKILL to all of it.
    pub fn kill(&mut self) {
        self.process.kill();
    }
}
