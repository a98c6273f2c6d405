// One WHIP session (RFC 9725): one peer connection, from its POST to its DELETE. It decides nothing about rejoining;
// it reports what happens to it and answers what it is asked.

import { fragment, iceServers, restarted, ufragOf } from "./sdp.js";

/** A POST may be held while the server makes sure that a silent holder is dead; longer than this it is lost. */
const POST_TIMEOUT = 30_000;
/** A PATCH. */
const TIMEOUT = 2_000;
/** How long anybody waits to learn what became of a session; a new POST follows, and must not be late. */
const FAREWELL = 500;
/**
 * A path without any answer for this long, and for half as long again as it ever went without, is dead. Chromium asks
 * every 2.5 s at least, and calls a path `disconnected` only after 5 to 8 s in which the page would claim to be on air.
 */
const SILENT = 3_500;
/** Firefox asks every 4 to 6 s (RFC 7675): what is usual has to be seen once before anything is called unusual. */
const LEARN = 7_000;
/** How often the path is looked at. */
const LOOK = 500;

/**
 * The server said no. `reason` is its own word where the answer depends on who else is here (409, 429, 5xx), since only it
 * knows why; for everything that is wrong with the request itself it is `http-` and the status.
 */
export class Refusal extends Error {
  constructor({ status, reason, detail, retryAfter }) {
    super(detail || reason);
    Object.assign(this, { status, reason, detail, retryAfter });
  }

  /** Reads status, `Retry-After` and the problem body (RFC 9457) of a response. */
  static async from(response) {
    const problem = await problemOf(response);
    const { status } = response;
    const situation = status >= 500 || status === 409 || status === 429;
    return new Refusal({
      status,
      reason: (situation && problem.reason) || `http-${status}`,
      detail: problem.detail,
      retryAfter: retryAfterOf(response),
    });
  }
}

/** The browser cannot do what publishing needs, or the server's answer is unusable. `reason` says which. */
export class Unable extends Error {
  constructor(reason, detail = "") {
    super(detail || reason);
    Object.assign(this, { reason, detail });
  }
}

async function problemOf(response) {
  const type = response.headers.get("Content-Type") ?? "";
  try {
    if (!type.includes("json")) return { detail: type.includes("html") ? "" : (await response.text()).slice(0, 300).trim() };
    const body = await response.json();
    const fromType = typeof body.type === "string" ? /([a-z][a-z-]*)$/.exec(body.type)?.[1] : undefined;
    const reason = typeof body.reason === "string" ? body.reason : fromType === "blank" ? undefined : fromType;
    const detail = [body.detail, body.title].find((text) => typeof text === "string") ?? "";
    return { reason, detail: detail.slice(0, 300) };
  } catch {
    return { detail: "" };
  }
}

/** Milliseconds, or null: seconds or an HTTP date (RFC 9110, 10.2.3). */
function retryAfterOf(response) {
  const given = response.headers.get("Retry-After")?.trim();
  if (!given) return null;
  const wait = /^\d+$/.test(given) ? Number(given) * 1000 : Date.parse(given) - Date.now();
  return Number.isNaN(wait) ? null : Math.min(Math.max(wait, 0), 3_600_000);
}

export class Session {
  /**
   * @param {object} setup
   * @param {string} setup.endpoint the WHIP endpoint's URL
   * @param {string} setup.token bearer token, or empty
   * @param {MediaStream} setup.stream at most one audio and one video track
   * @param {RTCIceServer[]} setup.iceServers
   * @param {(what: "post"|"connected"|"disconnected"|"silent"|"failed"|"closed"|"gone") => void} setup.report
   */
  constructor(setup) {
    this.#setup = setup;
  }

  /** The session's URL once the server has answered, else null. */
  url = null;
  /** What the server offered for gathering; of use to the next session, this one has gathered already. */
  iceServers = [];

  #setup;
  #pc = null;
  #etag = null;
  #post = new AbortController();
  #closed = false;
  #candidates = [];
  #gathered = false;
  #patching = false;
  #looking = null;
  #trickle = true;

  /** Offers, POSTs and applies the answer. Throws Refusal, Unable, or what `fetch` throws for a network error. */
  async open() {
    const { endpoint, stream, iceServers: servers } = this.#setup;
    const pc = new RTCPeerConnection({ iceServers: servers, bundlePolicy: "max-bundle" });
    this.#pc = pc;
    for (const track of [...stream.getAudioTracks().slice(0, 1), ...stream.getVideoTracks().slice(0, 1)]) {
      const transceiver = pc.addTransceiver(track, { direction: "sendonly", streams: [stream] });
      if (track.kind === "video") preferH264(transceiver);
    }
    pc.onicecandidate = ({ candidate }) => this.#gather(candidate);
    pc.onconnectionstatechange = () => {
      if (pc.connectionState === "connected") {
        this.#watchPath();
        this.#report("connected");
      }
      if (pc.connectionState === "failed") this.#report("failed");
    };
    pc.oniceconnectionstatechange = () => {
      if (pc.iceConnectionState === "disconnected") this.#report("disconnected");
    };
    await pc.setLocalDescription(await pc.createOffer());
    // No waiting for candidates: what is found later is trickled, and a reachable server sees our address anyway.
    const timeout = setTimeout(() => this.#post.abort(new Error("no answer")), POST_TIMEOUT);
    let response, answer;
    this.#report("post");
    try {
      response = await this.#fetch(endpoint, "POST", {
        headers: { "Content-Type": "application/sdp" },
        body: pc.localDescription.sdp,
        signal: this.#post.signal,
      });
      if (response.status !== 201) throw await Refusal.from(response);
      const location = response.headers.get("Location");
      if (!location) throw new Unable("bad-answer", "The server named no session.");
      this.url = new URL(location, response.url || endpoint).href;
      this.#etag = response.headers.get("ETag");
      answer = await response.text();
    } finally {
      clearTimeout(timeout);
    }
    // Closed while the answer was on its way: the server holds a slot for us that nobody wants.
    if (this.#closed) return void this.end();
    this.iceServers = iceServers(response.headers.get("Link"));
    if (this.iceServers.length) pc.setConfiguration({ ...pc.getConfiguration(), iceServers: this.iceServers });
    try {
      await pc.setRemoteDescription({ type: "answer", sdp: answer });
    } catch (error) {
      throw new Unable("bad-answer", error.message);
    }
    this.#watchTransport();
    this.#flush();
  }

  /**
   * Restarts ICE over the same session, DTLS and slot.
   * Returns "ok", "gone" (no such session any more) or "refused" (the old ICE goes on); throws on a network error.
   */
  async restart() {
    const pc = this.#pc;
    if (!this.#etag || pc.signalingState !== "stable") return "refused";
    this.#patching = true;
    try {
      await pc.setLocalDescription(await pc.createOffer({ iceRestart: true }));
      const response = await this.#patch("*", []);
      if (response.status === 404 || response.status === 410) return "gone";
      const sdp = response.status === 200 ? restarted(pc.currentRemoteDescription.sdp, await response.text()) : null;
      if (!sdp) return "refused";
      this.#etag = response.headers.get("ETag") ?? this.#etag;
      await pc.setRemoteDescription({ type: "answer", sdp });
      return "ok";
    } finally {
      // What was not answered must not stay pending: the old ICE session is the one that counts, and may still work.
      if (pc.signalingState === "have-local-offer") await pc.setLocalDescription({ type: "rollback" });
      this.#patching = false;
      this.#flush();
    }
  }

  /**
   * Ends the session at the server, unless it is over already. Outlives the page.
   * Returns what became of it: "there" (it was ours to the last), "gone", or "unknown" (no answer); and why it is
   * gone, if the server says.
   */
  async end() {
    return this.#ask("DELETE");
  }

  /** Whether the server still knows the session; answers like `end`. */
  async look() {
    return this.#ask("GET");
  }

  /** Takes everything down on this side, at once. Nothing is reported afterwards. */
  close() {
    if (this.#closed) return;
    this.#closed = true;
    clearInterval(this.#looking);
    this.#post.abort(new Error("closed"));
    this.#pc?.close();
  }

  /** Sends `stream`'s tracks from now on. Their kinds must be those the session began with. */
  async replace(stream) {
    this.#setup.stream = stream;
    for (const { sender } of this.#pc?.getTransceivers() ?? []) {
      const track = stream.getTracks().find(({ kind }) => kind === sender.track?.kind);
      if (track) await sender.replaceTrack(track);
    }
  }

  /** Whether the peer connection calls itself connected. */
  get connected() {
    return this.#pc?.connectionState === "connected";
  }

  /** The path in use, and how often the far side has answered on it; that grows while the path works. */
  async path() {
    const pair = selectedPair(await this.#pc.getStats());
    return { id: pair?.id, answers: (pair?.responsesReceived ?? 0) + (pair?.bytesReceived ?? 0) };
  }

  /** The browser's counters, or null when there is no connection. */
  async stats() {
    if (!this.#pc || this.#closed) return null;
    const report = await this.#pc.getStats();
    const stats = { bytes: 0, packets: 0, lost: 0, roundTrip: null, width: 0, height: 0, fps: null, limitedBy: "none" };
    for (const entry of report.values()) {
      if (entry.type === "outbound-rtp") {
        stats.bytes += (entry.bytesSent ?? 0) + (entry.headerBytesSent ?? 0);
        stats.packets += entry.packetsSent ?? 0;
        if (entry.kind === "video") {
          stats.width = entry.frameWidth ?? 0;
          stats.height = entry.frameHeight ?? 0;
          stats.fps = entry.framesPerSecond ?? null;
          stats.limitedBy = entry.qualityLimitationReason ?? "none";
        }
      } else if (entry.type === "remote-inbound-rtp") {
        stats.lost += entry.packetsLost ?? 0;
      }
    }
    const seconds = selectedPair(report)?.currentRoundTripTime;
    if (seconds !== undefined) stats.roundTrip = seconds * 1000;
    return stats;
  }

  #report(what) {
    if (!this.#closed) this.#setup.report(what);
  }

  /**
   * A server that ends a session says so in DTLS, which is here after milliseconds; `connectionState` follows only
   * 7 to 17 seconds later, and all that time a page would claim to be on air.
   */
  #watchTransport() {
    const transport = this.#pc.getSenders()[0]?.transport;
    if (!transport) return;
    const check = () => {
      if (transport.state === "closed") this.#report("closed");
      if (transport.state === "failed") this.#report("failed");
    };
    transport.onstatechange = check;
    check();
  }

  #watchPath() {
    clearInterval(this.#looking);
    const began = performance.now();
    let since = began;
    let longest = 0;
    let last = {};
    this.#looking = setInterval(async () => {
      const path = await this.path();
      const now = performance.now();
      if (path.id !== last.id || path.answers !== last.answers) {
        longest = Math.max(longest, now - since);
        last = path;
        since = now;
      } else if (now - began >= LEARN && now - since >= Math.max(SILENT, longest * 1.5)) {
        since = now;
        this.#report("silent");
      }
    }, LOOK);
  }

  #gather(candidate) {
    if (candidate?.candidate) this.#candidates.push(candidate);
    else this.#gathered = true;
    this.#flush();
  }

  /** Sends the candidates found so far, one PATCH at a time; those found meanwhile share the next one. */
  async #flush() {
    if (!this.url || this.#closed || this.#patching || !this.#trickle) return;
    const ufrag = ufragOf(this.#pc.localDescription.sdp);
    const current = this.#candidates.filter(({ usernameFragment }) => !usernameFragment || usernameFragment === ufrag);
    this.#candidates = [];
    const complete = this.#gathered;
    if (!current.length && !complete) return;
    this.#gathered = false;
    this.#patching = true;
    try {
      const response = await this.#patch(this.#etag, current.map((each) => each.candidate), complete);
      if (response.status === 404 || response.status === 410) this.#report("gone");
      // Not every server trickles; it has what was in the offer and sees where our packets come from.
      if ([405, 422, 501].includes(response.status)) this.#trickle = false;
    } catch {
      // Candidates that did not arrive cost a path, not the session; ICE says if it needed it.
    } finally {
      this.#patching = false;
    }
    if (this.#candidates.length) this.#flush();
  }

  #patch(match, candidates, complete = false) {
    const headers = { "Content-Type": "application/trickle-ice-sdpfrag" };
    if (match) headers["If-Match"] = match;
    const body = fragment(this.#pc.localDescription.sdp, candidates, complete);
    return this.#fetch(this.url, "PATCH", { headers, body, signal: AbortSignal.timeout(TIMEOUT) });
  }

  /** The request itself goes on after the time is over: a slot that is freed late is better than one that is not. */
  async #ask(method) {
    if (!this.url) return { fate: "unknown" };
    const answer = this.#fetch(this.url, method, { keepalive: true }).then(async (response) => {
      if (response.ok) return { fate: "there" };
      const gone = response.status === 404 || response.status === 410;
      return gone ? { fate: "gone", reason: (await problemOf(response)).reason } : { fate: "unknown" };
    });
    const late = new Promise((resolve) => setTimeout(resolve, FAREWELL, { fate: "unknown" }));
    return Promise.race([answer.catch(() => ({ fate: "unknown" })), late]);
  }

  #fetch(url, method, { headers = {}, ...rest }) {
    const { token } = this.#setup;
    return fetch(url, {
      method,
      headers: token ? { ...headers, Authorization: `Bearer ${token}` } : headers,
      cache: "no-store",
      credentials: "omit",
      ...rest,
    });
  }
}

/**
 * H.264 first, constrained baseline in packetization mode 1 before the rest: it is what every player and television
 * decodes, and what the server picks.
 */
function preferH264(transceiver) {
  const all = RTCRtpSender.getCapabilities?.("video")?.codecs ?? [];
  const rank = ({ mimeType, sdpFmtpLine = "" }) => {
    if (mimeType.toLowerCase() !== "video/h264") return 3;
    if (!sdpFmtpLine.includes("packetization-mode=1")) return 2;
    return /profile-level-id=42e0/i.test(sdpFmtpLine) ? 0 : 1;
  };
  if (!all.some((codec) => rank(codec) < 3)) throw new Unable("no-h264");
  // Array.prototype.sort is stable: the browser's own order decides among equals.
  transceiver.setCodecPreferences?.([...all].sort((one, other) => rank(one) - rank(other)));
}

function selectedPair(report) {
  for (const entry of report.values()) {
    if (entry.type === "transport" && entry.selectedCandidatePairId) return report.get(entry.selectedCandidatePairId);
  }
  // Firefox names the pair on the pair itself.
  return [...report.values()].find(({ type, selected, nominated, state }) => {
    return type === "candidate-pair" && (selected || (nominated && state === "succeeded"));
  });
}
