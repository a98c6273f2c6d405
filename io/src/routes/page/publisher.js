// The publisher's state machine: it holds one WHIP session at a time, and gets another when that one is lost. It knows
// nothing of the page around it; the page listens for "change" and shows `state`, `reason` and `retryAt`.
//
//   idle ─ start ─▶ asking ─▶ connecting ─▶ publishing ─▶ stopped
//                     │           │ ▲            │
//                     ▼           ▼ │            ▼
//                   failed     waiting      reconnecting ─▶ publishing
//                              refused ◀─────────┤
//                                                ▼
//                                            displaced
//
// Who is alive holds the slot. So this side comes back at once after an accident, waits when it is told to, and does
// not contend for a slot that somebody else was given: two pages that each throw the other out serve nobody.

import { Refusal, Session, Unable } from "./session.js";

/** Milliseconds without an answer after which a POST is held rather than slow (uncontended: below 300 ms). */
const HELD = 800;
/** From the answer to the first connection; the server itself gives up after 15 s. */
const SETUP = 10_000;
/** ICE `disconnected` often mends itself in this time. */
const GRACE = 1_000;
/** An ICE restart that does not bring media back by then has failed. */
const RESTART = 2_000;
/** From `disconnected` to giving the session up: with the farewell's 500 ms, a new POST leaves within 3 s. */
const DROPPED = 2_400;
/** How often a recovering session is looked at. */
const LOOK = 200;
/** A session that lasted this long starts the backoff anew; one that dies young does not. */
const STABLE = 5_000;
/** Waits before each POST of a row. */
const BACKOFF = [0, 500, 1_000, 2_000, 4_000, 8_000];
/** A refusal without Retry-After. */
const REFUSED = 1_000;

/** Refused by reason of who holds the slot. */
const HELD_BY_ANOTHER = ["holder-live", "holder-negotiating", "holder-without-audio"];
/** Nothing changes by asking again: somebody has to do something about it first. */
const FINAL = [400, 401, 403, 405, 406, 411, 413, 415, 422];

export class Publisher extends EventTarget {
  /** @type {"idle"|"asking"|"connecting"|"waiting"|"publishing"|"reconnecting"|"refused"|"displaced"|"failed"|"stopped"} */
  state = "idle";
  /** A word for why, or empty: the server's own, `http-NNN`, or one of ours (see words.js). */
  reason = "";
  /** The server's or browser's own sentence about it, or empty. */
  detail = "";
  /** When the next POST leaves (Date.now()), or null. */
  retryAt = null;
  /** How many POSTs were sent since the page was loaded. */
  posts = 0;
  /** Since when this session is connected (Date.now()), or null. */
  connectedAt = null;

  #setup = null;
  #run = 0;
  #session = null;
  #recovery = null;
  #timers = new Set();
  #row = 0;
  #iceServers = [];
  #published = false;
  #endedByServer = false;

  /** The session's URL, or null. */
  get session() {
    return this.#session?.url ?? null;
  }

  /** Whether it is at work: Stop makes sense. */
  get active() {
    return ["asking", "connecting", "waiting", "publishing", "reconnecting"].includes(this.state) || this.retryAt !== null;
  }

  /**
   * Publishes until `stop`, or until only somebody at the page can help.
   * @param {object} setup
   * @param {string} setup.endpoint the WHIP endpoint's URL
   * @param {string} setup.token bearer token, or empty
   * @param {() => Promise<MediaStream>} setup.capture
   * @param {() => Promise<boolean|null>} setup.occupied whether every slot is held; null if that cannot be learned
   */
  async start(setup) {
    this.#leave();
    this.#setup = setup;
    this.#row = 0;
    this.#published = false;
    this.#endedByServer = false;
    const run = this.#run;
    this.#set("asking");
    try {
      setup.stream = await setup.capture();
    } catch (error) {
      if (run === this.#run) this.#set("failed", error.reason ?? error.name, { detail: error.message });
      return;
    }
    if (run === this.#run) this.#attempt();
  }

  /** Ends for good; the server hears of it even if the page is being closed. */
  stop() {
    this.#leave();
    this.#set("stopped");
  }

  /** Ends because the picture or sound itself is gone. */
  fail(reason) {
    this.#leave();
    this.#set("failed", reason);
  }

  /** Ends a wait: somebody, or a network that came back, says that now is better than later. */
  retryNow() {
    if (this.retryAt === null) return;
    this.#clear();
    this.#attempt();
  }

  /** The way to the server may be another one now. */
  networkChanged() {
    if (this.#session?.connected || this.#recovery) this.#recover(this.#session, 0);
    // What the server asked for is kept; our own backoff was about a network that is no more.
    else if (this.state === "reconnecting") this.retryNow();
  }

  /** Sends other tracks of the same kinds, without anybody noticing. */
  async replace(stream) {
    if (this.#setup) this.#setup.stream = stream;
    await this.#session?.replace(stream);
  }

  /** See Session.stats; null when nothing is sent. */
  async stats() {
    return this.#session?.stats() ?? null;
  }

  async #attempt() {
    const { endpoint, token, stream } = this.#setup;
    const session = new Session({
      endpoint,
      token,
      stream,
      iceServers: this.#iceServers,
      report: (what) => session === this.#session && this.#happened(session, what),
    });
    this.#session = session;
    this.#set(this.#published ? "reconnecting" : "connecting", this.#published ? this.reason : "");
    const held = this.#after(HELD, () => this.#set("waiting"));
    try {
      await session.open();
    } catch (error) {
      if (session !== this.#session) return;
      this.#clear(held);
      this.#session = null;
      // An answer that could not be used left a session behind.
      session.end();
      session.close();
      this.#refused(error);
      return;
    }
    if (session !== this.#session) return;
    this.#clear(held);
    if (session.iceServers.length) this.#iceServers = session.iceServers;
    if (this.state === "publishing") return;
    if (this.state === "waiting") this.#set(this.#published ? "reconnecting" : "connecting");
    this.#after(SETUP, () => this.#lost(session, "no-path"));
  }

  #happened(session, what) {
    switch (what) {
      case "post":
        this.posts += 1;
        break;
      case "connected":
        this.#recovery = null;
        this.#clear();
        this.#published = true;
        this.#endedByServer = false;
        this.connectedAt ??= Date.now();
        this.#set("publishing");
        this.#after(STABLE, () => (this.#row = 0));
        break;
      case "disconnected":
      case "silent":
        // While it is being set up the set-up's own deadline holds.
        if (this.state !== "publishing") break;
        this.#clear();
        this.#set("reconnecting", "disconnected");
        this.#after(DROPPED, () => this.#lost(session, "disconnected"));
        // Silence has lasted long enough already.
        if (!this.#recovery) this.#recover(session, what === "silent" ? 0 : GRACE);
        break;
      default:
        this.#lost(session, what);
    }
  }

  /** Restarts ICE after `patience`, and gives the session up if its path does not answer by then. */
  async #recover(session, patience) {
    const recovery = (this.#recovery = {});
    const over = () => recovery !== this.#recovery || session !== this.#session;
    await this.#pause(patience);
    if (over()) return;
    const before = await session.path();
    const until = Date.now() + RESTART;
    const outcome = await session.restart().catch(() => "unanswered");
    if (over()) return;
    if (outcome === "gone") return this.#lost(session, "gone");
    if (outcome === "refused" && !session.connected) return this.#lost(session, "disconnected");
    // The server keeps the old ICE session then; as long as that one works nothing is lost.
    if (outcome === "refused" && this.state === "publishing") return void (this.#recovery = null);
    while (Date.now() < until) {
      const { id, answers } = await session.path();
      if (session.connected && answers > (id === before.id ? before.answers : 0)) break;
      await this.#pause(LOOK);
      if (over()) return;
    }
    if (over()) return;
    this.#recovery = null;
    if (Date.now() >= until) return this.#lost(session, "disconnected");
    if (this.state !== "publishing") this.#happened(session, "connected");
  }

  /** The session is of no use any more. From here to the next connection the page says so. */
  async #lost(session, cause) {
    if (session !== this.#session) return;
    const run = this.#run;
    this.#clear();
    this.#session = null;
    this.#recovery = null;
    this.connectedAt = null;
    this.#set(this.#published ? "reconnecting" : "connecting", cause);
    // A far side that closed DTLS has ended the session: ask, without the side effects of a DELETE. In every other
    // case DELETE answers the same question, and if the session was still ours its slot is free for our next POST.
    const { fate, reason } = await (cause === "closed" ? session.look() : session.end());
    session.close();
    if (run !== this.#run) return;
    if (fate === "there" && cause === "closed") session.end();
    this.#endedByServer = fate === "gone";
    const verdict = this.#endedByServer ? await this.#verdict(reason) : "rejoin";
    if (run !== this.#run) return;
    if (verdict === "rejoin") this.#retry(this.state, { reason: cause });
    else this.#set("displaced", verdict);
  }

  /**
   * The server ended the session. Coming back by itself is right where it takes nothing from anybody: after the
   * watchdog, after a restart of the server, where a slot is free. Where somebody else was given the slot, and where
   * an operator ended it, only a person may ask again. What cannot be learned is left to the POST: see #refused.
   */
  async #verdict(reason) {
    if (reason === "displaced" || reason === "kicked") return reason;
    const ours = ["inactive", "setup-timeout", "ice-failed", "dtls-closed", "bye", "shutdown", "deleted"];
    if (ours.includes(reason)) return "rejoin";
    return (await this.#setup.occupied().catch(() => null)) ? "displaced" : "rejoin";
  }

  #refused(error) {
    if (error instanceof Unable) return this.#set("failed", error.reason, { detail: error.detail });
    if (!(error instanceof Refusal)) {
      // `fetch` throws TypeError or our abort for every kind of network trouble; anything else is the browser's refusal.
      const network = error instanceof TypeError || error.message === "no answer";
      if (!network) return this.#set("failed", "browser", { detail: error.message });
      return this.#retry("reconnecting", { reason: "network" });
    }
    const { status, reason, detail, retryAfter } = error;
    if (this.#endedByServer && HELD_BY_ANOTHER.includes(reason)) return this.#set("displaced", "displaced", { detail });
    // An endpoint that was there a moment ago will be again: a proxy answers so while the server restarts.
    if (FINAL.includes(status) || (status === 404 && !this.#published)) return this.#set("refused", reason, { detail });
    this.#retry("refused", { reason, detail, atLeast: retryAfter ?? REFUSED });
  }

  /** Waits for the next POST, never shorter than `atLeast`: jitter spreads those who lost the same server. */
  #retry(state, { reason, detail = "", atLeast = 0 }) {
    const base = BACKOFF[Math.min(this.#row, BACKOFF.length - 1)];
    this.#row += 1;
    const wait = Math.max(base * (0.75 + Math.random() / 2), atLeast + (atLeast && Math.random() * 250));
    this.#set(state, reason, { detail, retryAt: Date.now() + wait });
    this.#after(wait, () => this.#attempt());
  }

  /** Ends whatever runs. The slot is given back by DELETE and by closing DTLS, whichever comes through. */
  #leave() {
    this.#run += 1;
    this.#clear();
    const session = this.#session;
    this.#session = null;
    this.#recovery = null;
    this.connectedAt = null;
    session?.end();
    session?.close();
  }

  #set(state, reason = "", { detail = "", retryAt = null } = {}) {
    Object.assign(this, { state, reason, detail, retryAt });
    this.dispatchEvent(new Event("change"));
  }

  #after(ms, act) {
    const timer = setTimeout(() => {
      this.#timers.delete(timer);
      act();
    }, ms);
    this.#timers.add(timer);
    return timer;
  }

  /** Every wait of the state that ends here, or one of them. */
  #clear(one) {
    for (const timer of one === undefined ? this.#timers : [one]) {
      clearTimeout(timer);
      this.#timers.delete(timer);
    }
  }

  #pause(ms) {
    return new Promise((resolve) => setTimeout(resolve, ms));
  }
}
