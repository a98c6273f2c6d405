// The rules of rejoining, in simulated time: `node --test io/src/routes/page/`.

import assert from "node:assert/strict";
import { afterEach, beforeEach, mock, test } from "node:test";

import { Publisher } from "./publisher.js";
import { fragment, iceServers, restarted } from "./sdp.js";
import { explain, STATES } from "./words.js";

const OFFER = [
  "v=0", "a=group:BUNDLE 0 1",
  "m=audio 9 UDP/TLS/RTP/SAVPF 111", "a=ice-ufrag:old", "a=ice-pwd:oldpassword", "a=mid:0",
  "m=video 9 UDP/TLS/RTP/SAVPF 102", "a=ice-ufrag:old", "a=ice-pwd:oldpassword", "a=mid:1", "",
].join("\r\n");
const ANSWER = OFFER.replace("a=mid:0", "a=mid:0\r\na=candidate:1 1 udp 1 192.0.2.1 9 typ host");

/** A peer connection whose far side the test plays. */
class Peer {
  static all = [];
  connectionState = "new";
  iceConnectionState = "new";
  signalingState = "stable";
  answers = 0;
  transport = { state: "new" };

  constructor() {
    Peer.all.push(this);
  }
  addTransceiver() {
    return {};
  }
  async createOffer(options) {
    return { type: "offer", sdp: options?.iceRestart ? OFFER.replaceAll("a=ice-ufrag:old", "a=ice-ufrag:new") : OFFER };
  }
  async setLocalDescription(description) {
    this.signalingState = description.type === "rollback" ? "stable" : "have-local-offer";
    if (description.type === "offer") this.localDescription = description;
  }
  async setRemoteDescription(description) {
    this.signalingState = "stable";
    this.currentRemoteDescription = description;
  }
  getSenders() {
    return [{ transport: this.transport }];
  }
  async getStats() {
    return new Map([["t", { type: "transport", selectedCandidatePairId: "p" }], ["p", { id: "p", responsesReceived: this.answers }]]);
  }
  close() {
    this.connectionState = "closed";
  }

  connect() {
    this.connectionState = this.iceConnectionState = "connected";
    this.onconnectionstatechange();
  }
  fail() {
    this.connectionState = "failed";
    this.onconnectionstatechange();
  }
  disconnect() {
    this.iceConnectionState = this.connectionState = "disconnected";
    this.oniceconnectionstatechange();
  }
  closedByServer() {
    this.transport.state = "closed";
    this.transport.onstatechange();
  }
}

let publisher, server, requests, began;

const created = () => new Response(ANSWER, { status: 201, headers: { Location: "/whip/live/s", ETag: '"1"' } });
const problem = (status, reason, headers = {}) =>
  new Response(JSON.stringify({ type: `/problems/${reason}`, detail: "in words" }), {
    status,
    headers: { "Content-Type": "application/problem+json", ...headers },
  });
const gone = () => problem(404, "no-session");
const posts = () => requests.filter(({ method }) => method === "POST").map(({ at }) => at);
const methods = () => requests.map(({ method }) => method);

/** Lets promises run out, then moves time by steps small enough for one timer to set the next. */
async function pass(ms) {
  for (let left = ms; ; left -= 10) {
    for (let turn = 0; turn < 40; turn++) await Promise.resolve();
    await new Promise(setImmediate);
    if (left <= 0) return;
    mock.timers.tick(10);
  }
}

/** A publisher whose POST is on its way, or answered if the server does so at once. */
async function begin(occupied = null) {
  publisher.start({
    endpoint: "http://edge/whip/live",
    token: "secret",
    capture: async () => ({ getAudioTracks: () => [{ kind: "audio" }], getVideoTracks: () => [] }),
    occupied: async () => occupied,
  });
  await pass(0);
}

/** A publisher that is on air; what it asks from here on is what `requests` holds. */
async function live(occupied) {
  await begin(occupied);
  Peer.all[0].connect();
  await pass(0);
  requests = [];
  began = Date.now();
}

beforeEach(() => {
  mock.timers.enable({ apis: ["setTimeout", "setInterval", "Date"], now: 1_000_000 });
  mock.method(Math, "random", () => 0.5);
  mock.method(performance, "now", () => Date.now());
  Peer.all = [];
  globalThis.RTCPeerConnection = Peer;
  requests = [];
  began = Date.now();
  server = { POST: created, GET: gone, DELETE: () => new Response("", { status: 200 }), PATCH: () => new Response(null, { status: 204 }) };
  mock.method(globalThis, "fetch", async (url, options) => {
    requests.push({ ...options, url, at: Date.now() - began });
    return server[options.method](options);
  });
  publisher = new Publisher();
});

afterEach(() => {
  publisher.stop();
  mock.timers.reset();
  mock.restoreAll();
});

const offline = () => {
  throw new TypeError("fetch failed");
};

test("a publisher is on air when its peer connection is connected, not before", async () => {
  const begun = begin();
  assert.equal(publisher.state, "asking");
  await begun;
  assert.equal(publisher.state, "connecting");
  assert.equal(requests[0].headers.Authorization, "Bearer secret");
  Peer.all[0].connect();
  assert.equal(publisher.state, "publishing");
  assert.equal(publisher.session, "http://edge/whip/live/s");
});

test("a POST without an answer is shown as held", async () => {
  server.POST = () => new Promise(() => {});
  await begin();
  await pass(700);
  assert.equal(publisher.state, "connecting");
  await pass(200);
  assert.equal(publisher.state, "waiting");
});

test("after a failure the next POST leaves at once, then after 0.5, 1, 2, 4 and at most 8 s", async () => {
  await live();
  server.POST = offline;
  Peer.all[0].fail();
  await pass(33_000);
  const at = posts();
  const waits = at.slice(1).map((time, index) => time - at[index]);
  assert.ok(at[0] <= 20, `first after ${at[0]} ms`);
  // Jitter is a quarter either way; here it is in the middle.
  [500, 1000, 2000, 4000, 8000, 8000].forEach((wait, index) => {
    assert.ok(Math.abs(waits[index] - wait) <= 30, `wait ${index}: ${waits[index]} ms`);
  });
  assert.equal(publisher.state, "reconnecting");
});

test("its own slot is given back before the next POST", async () => {
  await live();
  Peer.all[0].fail();
  await pass(50);
  assert.deepEqual(methods(), ["DELETE", "POST"]);
});

test("a first POST leaves within 3 s of disconnected, even if nothing is answered", async () => {
  await live();
  server.PATCH = server.DELETE = () => new Promise(() => {});
  Peer.all[0].disconnect();
  assert.equal(publisher.state, "reconnecting");
  await pass(3_500);
  const [first] = posts();
  assert.ok(first > 2_000 && first <= 3_000, `${first} ms`);
});

test("disconnected gets a second to mend itself", async () => {
  await live();
  Peer.all[0].disconnect();
  await pass(900);
  Peer.all[0].connect();
  await pass(200);
  assert.equal(publisher.state, "publishing");
  assert.deepEqual(methods(), []);
});

test("an ICE restart that brings answers back keeps the session", async () => {
  await live();
  server.PATCH = () => {
    Object.assign(Peer.all[0], { connectionState: "connected", answers: 1 });
    return new Response("a=ice-ufrag:srv\r\na=ice-pwd:fresh\r\n", { status: 200, headers: { ETag: '"2"' } });
  };
  Peer.all[0].disconnect();
  await pass(1_300);
  assert.equal(publisher.state, "publishing");
  assert.equal(publisher.posts, 1);
  const patch = requests.find(({ method }) => method === "PATCH");
  assert.equal(patch.headers["If-Match"], "*");
  assert.match(patch.body, /a=ice-ufrag:new/);
  assert.match(Peer.all[0].currentRemoteDescription.sdp, /a=ice-ufrag:srv/);
});

test("another network restarts ICE at once, and POSTs if nothing is answered within 2 s", async () => {
  await live();
  server.PATCH = offline;
  publisher.networkChanged();
  await pass(10);
  assert.deepEqual(methods(), ["PATCH"]);
  await pass(2_400);
  const [first] = posts();
  assert.ok(first >= 2_000 && first < 2_400, `${first} ms`);
});

test("where ICE cannot be restarted the old one goes on, with nothing left pending", async () => {
  await live();
  server.PATCH = () => problem(409, "restart-failed");
  publisher.networkChanged();
  await pass(2_500);
  assert.deepEqual([publisher.state, publisher.posts], ["publishing", 1]);
  assert.equal(Peer.all[0].signalingState, "stable");
});

/** The far side answers once every `every` ms. */
async function answer(every, times) {
  for (let time = 0; time < times; time++) {
    Peer.all[0].answers += 1;
    await pass(every);
  }
}

test("a path that falls silent is off air long before the browser says so", async () => {
  await live();
  await answer(1_000, 10);
  assert.equal(publisher.state, "publishing");
  await pass(3_500);
  assert.equal(publisher.state, "reconnecting");
});

test("a browser that asks seldom is not taken for a silent path", async () => {
  await live();
  await answer(6_000, 10);
  assert.equal(publisher.state, "publishing");
  assert.deepEqual(methods(), []);
});

test("closed by the server it is off air in the same moment", async () => {
  await live(true);
  Peer.all[0].closedByServer();
  assert.equal(publisher.state, "reconnecting");
});

test("displaced it does not contend for the slot, until somebody says so", async () => {
  await live(true);
  Peer.all[0].closedByServer();
  await pass(60_000);
  assert.equal(publisher.state, "displaced");
  assert.deepEqual(methods(), ["GET"]);
});

test("ended by the watchdog or a restart it comes back, for the slot is free", async () => {
  await live(false);
  Peer.all[0].closedByServer();
  await pass(10);
  assert.equal(publisher.posts, 2);
});

test("ended for a reason that cannot be learned, it asks once and takes a living holder as the answer", async () => {
  await live(null);
  server.POST = () => problem(503, "holder-live", { "Retry-After": "1" });
  Peer.all[0].closedByServer();
  await pass(20_000);
  assert.equal(publisher.state, "displaced");
  assert.equal(publisher.posts, 2);
});

test("a session that is gone when ICE is restarted may have been displaced", async () => {
  await live(true);
  server.PATCH = server.DELETE = gone;
  Peer.all[0].disconnect();
  await pass(1_100);
  assert.equal(publisher.state, "displaced");
});

test("Retry-After is honoured, however short the backoff", async () => {
  server.POST = () => problem(503, "holder-live", { "Retry-After": "7" });
  await begin();
  assert.deepEqual([publisher.state, publisher.reason], ["refused", "holder-live"]);
  publisher.networkChanged();
  await pass(6_990);
  assert.equal(publisher.posts, 1);
  await pass(300);
  assert.equal(publisher.posts, 2);
});

test("what is wrong with the request is not asked again", async () => {
  for (const status of [400, 401, 403, 404, 413, 415, 422]) {
    server.POST = () => problem(status, "word");
    await begin();
    const { posts: before } = publisher;
    await pass(20_000);
    assert.deepEqual([publisher.state, publisher.reason, publisher.posts], ["refused", `http-${status}`, before]);
    assert.equal(publisher.active, false);
  }
});

test("an endpoint that was there before is asked for again: the server may be starting", async () => {
  await live();
  server.POST = () => problem(404, "not-found");
  Peer.all[0].fail();
  await pass(3_000);
  assert.ok(publisher.posts > 2);
});

test("stop deletes the session, by a request that outlives the page, and nothing follows", async () => {
  await live();
  publisher.stop();
  await pass(20_000);
  assert.deepEqual(methods(), ["DELETE"]);
  assert.equal(requests[0].keepalive, true);
  assert.equal(Peer.all[0].connectionState, "closed");
});

test("stop while a POST is held hangs up", async () => {
  server.POST = () => new Promise(() => {});
  await begin();
  publisher.stop();
  assert.equal(requests[0].signal.aborted, true);
});

test("a session that is answered but never connected is given up", async () => {
  await begin();
  await pass(10_100);
  assert.deepEqual(methods(), ["POST", "DELETE", "POST"]);
});

test("a session that dies young does not start the backoff anew", async () => {
  await live();
  for (let round = 0; round < 3; round++) {
    Peer.all.at(-1).fail();
    await pass(4_000);
    Peer.all.at(-1).connect();
  }
  // Lost at 0, 4 and 8 s.
  [0, 4_500, 9_000].forEach((at, round) => assert.ok(Math.abs(posts()[round] - at) <= 30, `${posts()}`));
});

test("a fragment has the first section alone", () => {
  const text = fragment(OFFER, ["candidate:1 1 udp 1 192.0.2.7 9 typ host"], true);
  assert.equal(
    text,
    "a=group:BUNDLE 0 1\r\nm=audio 9 UDP/TLS/RTP/SAVPF 111\r\na=mid:0\r\na=ice-ufrag:old\r\na=ice-pwd:oldpassword\r\n" +
      "a=candidate:1 1 udp 1 192.0.2.7 9 typ host\r\na=end-of-candidates\r\n",
  );
});

test("a restart's answer has new credentials everywhere and new candidates instead of the old", () => {
  const sdp = restarted(ANSWER, "a=ice-ufrag:srv\r\na=ice-pwd:fresh\r\na=candidate:2 1 udp 1 192.0.2.2 9 typ host\r\n");
  assert.equal(sdp.match(/a=ice-ufrag:srv/g).length, 2);
  assert.equal(sdp.match(/a=ice-pwd:fresh/g).length, 2);
  assert.ok(!sdp.includes("192.0.2.1"));
  assert.ok(sdp.indexOf("192.0.2.2") < sdp.indexOf("m=video"));
  assert.equal(restarted(ANSWER, "a=ice-ufrag:only\r\n"), null);
});

test("ICE servers are read from Link, other links are not", () => {
  assert.deepEqual(
    iceServers('<stun:a.example>; rel="ice-server", <turn:b.example?transport=udp>; rel="ice-server"; username="u"; credential="p,q"; credential-type="password", </x>; rel="next"'),
    [{ urls: "stun:a.example" }, { urls: "turn:b.example?transport=udp", username: "u", credential: "p,q" }],
  );
  assert.deepEqual(iceServers(null), []);
});

test("every state has a title and a sentence; an unknown reason falls back to the server's words", () => {
  for (const state of Object.keys(STATES)) assert.ok(explain({ state, reason: "", detail: "" }).length > 10);
  assert.equal(explain({ state: "refused", reason: "http-418", detail: "short and stout" }), "short and stout");
  assert.match(explain({ state: "refused", reason: "http-422", detail: "two video sections" }), /two video sections/);
  assert.match(explain({ state: "displaced", reason: "displaced", detail: "" }), /off air.*Another publisher took over this slot because/);
});
