// The page around the publisher: reads what was chosen, shows what happens.
//
// For kiosks and automation: ?auto=1 publishes at once, ?source=camera|screen|test, ?token=…, ?video=0, ?audio=0.
// document.body.dataset.state and window.holdfast say what is going on.

import { capture, Meter, release } from "./capture.js";
import { Publisher } from "./publisher.js";
import { CHANNEL_STATES, explain, STATES } from "./words.js";

const query = new URLSearchParams(location.search);
const auto = query.get("auto") === "1";
const $ = (id) => document.getElementById(id);
const publisher = new Publisher();
const meter = new Meter();

let stream = null;
let endpoints = null;
let channels = [];
let wakeLock = null;
let choosing = Promise.resolve();

// ---- what was chosen ------------------------------------------------------------------------------------------------

const source = () => document.querySelector("input[name=source]:checked").value;
const chosen = () => endpoints?.find(({ name }) => name === $("endpoint").value);

/** A slot whose session is ending is nobody's already; of one whose state is not known nothing is said. */
const isFree = ({ state, session }) => state !== undefined && (state !== "held" || session?.state === "ending");

function wanted() {
  return {
    source: source(),
    video: $("video").checked,
    audio: $("audio").checked,
    camera: $("camera").value,
    microphone: $("microphone").value,
    height: Number($("height").value),
    rate: Number($("rate").value),
    processing: $("processing").checked,
  };
}

/** Shows a new capture; what was sent so far is replaced by it, without a new session. */
async function choose() {
  const old = stream;
  const next = await capture(wanted()).catch((error) => {
    // Many phones open one camera at a time.
    if (error.name !== "NotReadableError" || !old) throw error;
    release(old);
    return capture(wanted());
  });
  for (const track of next.getTracks()) track.addEventListener("ended", () => ended(next));
  for (const track of next.getAudioTracks()) track.enabled = $("mute").getAttribute("aria-pressed") !== "true";
  stream = next;
  if (publisher.active) await publisher.replace(next);
  release(old);
  $("preview").srcObject = next;
  meter.listen(next);
  show();
  listDevices();
  return next;
}

/** A camera was pulled out, or the browser's own "stop sharing" was pressed. */
function ended(which) {
  if (which !== stream) return;
  forget();
  if (publisher.active) publisher.fail("capture-ended");
}

function forget() {
  release(stream);
  stream = null;
  $("preview").srcObject = null;
  meter.listen(null);
  show();
}

async function listDevices() {
  const devices = (await navigator.mediaDevices?.enumerateDevices()) ?? [];
  for (const [select, kind] of [[$("camera"), "videoinput"], [$("microphone"), "audioinput"]]) {
    const value = select.value;
    // Before permission devices have neither id nor label.
    const known = devices.filter((device) => device.kind === kind && device.deviceId && device.label);
    select.replaceChildren(new Option("Default", ""), ...known.map(({ label, deviceId }) => new Option(label, deviceId)));
    select.value = known.some(({ deviceId }) => deviceId === value) ? value : "";
  }
}

// ---- publishing -----------------------------------------------------------------------------------------------------

/** The token of the last attempt: one that was refused was wrong, and not missing. */
let tried = "";

function publish() {
  const name = $("endpoint").value;
  tried = $("token").value.trim();
  publisher.start({
    endpoint: new URL(chosen()?.publish ?? `/whip/${name}`, location.href).href,
    token: tried,
    capture: async () => stream ?? choose(),
    occupied: async () => {
      await readStatus();
      const slots = endpoints?.find((endpoint) => endpoint.name === name)?.slots;
      return slots?.[0]?.state ? !slots.some(isFree) : null;
    },
  });
}

async function keepAwake() {
  if (publisher.active && document.visibilityState === "visible") {
    wakeLock ??= await navigator.wakeLock?.request("screen").catch(() => null);
    wakeLock?.addEventListener("release", () => (wakeLock = null), { once: true });
  } else if (!publisher.active) {
    wakeLock?.release();
  }
}

// ---- what happens ---------------------------------------------------------------------------------------------------

function show() {
  const { state, reason, active, retryAt } = publisher;
  document.body.dataset.state = state;
  $("state-icon").setAttribute("href", `#state-${state}`);
  const sentence = explain({ state, reason: reason === "http-401" && tried ? "wrong-token" : reason, detail: publisher.detail });
  // Set only when it changes: a screen reader reads it out each time.
  if ($("title").textContent !== STATES[state][0]) $("title").textContent = STATES[state][0];
  if ($("sentence").textContent !== sentence) $("sentence").textContent = sentence;
  document.title = `${STATES[state][0]} · Holdfast`;

  // Nobody is on air against somebody else's will without a person having said so: see Publisher.
  $("go").textContent = active ? "Stop" : state === "displaced" ? "Take back" : "Publish";
  $("go").classList.toggle("stop", active);
  $("retry").hidden = retryAt === null;
  $("on-air").hidden = state !== "publishing";

  // A session keeps the kinds it began with; devices and sizes may change under way.
  const kinds = chosen()?.media ?? "audio+video";
  for (const kind of ["video", "audio"]) {
    if (!kinds.includes(kind)) $(kind).checked = false;
    $(kind).disabled = active || !kinds.includes(kind);
  }
  $("endpoint").disabled = active;
  $("token").disabled = active;
  const device = source() !== "test";
  $("camera").disabled = source() !== "camera" || !$("video").checked;
  $("microphone").disabled = !device || !$("audio").checked;
  $("processing").disabled = !device || !$("audio").checked;
  $("height").disabled = $("rate").disabled = !$("video").checked;
  if (reason === "http-401" || reason === "http-403" || $("token").value || chosen()?.open === false) $("token-field").hidden = false;

  const picture = stream?.getVideoTracks().length > 0;
  $("blank").hidden = picture;
  $("blank-text").textContent = stream ? "Sound only." : "The preview stays on this device until you publish.";
  $("show").hidden = stream !== null || state === "asking";
  count();
}

function count() {
  const { retryAt, connectedAt } = publisher;
  $("countdown").hidden = retryAt === null;
  const seconds = Math.ceil(((retryAt ?? 0) - Date.now()) / 1000);
  $("countdown").textContent = retryAt === null ? "" : seconds > 0 ? `Next try in ${seconds} s` : "Trying now";
  $("elapsed").textContent = connectedAt === null ? "0:00" : clock((Date.now() - connectedAt) / 1000);
}

function clock(seconds) {
  const [hours, minutes, rest] = [seconds / 3600, (seconds / 60) % 60, seconds % 60].map(Math.floor);
  const two = (part) => String(part).padStart(2, "0");
  return hours ? `${hours}:${two(minutes)}:${two(rest)}` : `${minutes}:${two(rest)}`;
}

let peak = -60;
function showLevel() {
  const level = meter.level();
  const muted = $("mute").getAttribute("aria-pressed") === "true";
  peak = Math.max(level ?? -60, peak - 1);
  $("level-bar").style.transform = `scaleX(${((level ?? -60) + 60) / 60})`;
  $("level-bar").className = level > -1 ? "clipping" : level > -6 ? "loud" : "";
  $("level-peak").hidden = level === null;
  $("level-peak").style.transform = `translateX(${((peak + 60) / 60) * 100}%)`;
  $("level").setAttribute("aria-valuenow", Math.round(level ?? -60));
  $("level-text").textContent = muted ? "muted" : level === null ? (stream ? "unknown" : "no sound") : `${Math.round(level)} dB`;
}

let before = null;
async function showFigures() {
  let stats = publisher.state === "publishing" ? await publisher.stats() : null;
  if (publisher.state !== "publishing") stats = null;
  const at = performance.now();
  const since = before && stats && stats.bytes >= before.stats.bytes ? before : null;
  before = stats && { stats, at };
  if (!stats) {
    for (const id of ["bitrate", "picture", "frames", "round-trip", "loss"]) $(id).textContent = "–";
    $("limited").hidden = true;
    return;
  }
  if (since) {
    const kilobits = ((stats.bytes - since.stats.bytes) * 8) / (at - since.at);
    $("bitrate").textContent = kilobits >= 1000 ? `${(kilobits / 1000).toFixed(1)} Mbit/s` : `${Math.round(kilobits)} kbit/s`;
    const sent = stats.packets - since.stats.packets;
    const lost = Math.max(0, stats.lost - since.stats.lost);
    $("loss").textContent = sent ? `${Math.min(100, (lost / sent) * 100).toFixed(1)} %` : "–";
  }
  $("round-trip").textContent = stats.roundTrip === null ? "–" : `${Math.round(stats.roundTrip)} ms`;
  $("picture").textContent = stats.width ? `${stats.width}×${stats.height}` : "none";
  $("frames").textContent = stats.fps === null ? "–" : `${Math.round(stats.fps)} fps`;
  const limits = { cpu: "The picture is reduced: this device is too slow for it.", bandwidth: "The picture is reduced: the network does not carry more." };
  $("limited").textContent = limits[stats.limitedBy] ?? "";
  // Every session begins small and finds out what the network carries.
  $("limited").hidden = !(stats.limitedBy in limits) || Date.now() - publisher.connectedAt < 15_000;
}

// ---- the server's side ----------------------------------------------------------------------------------------------

// Names are letters, digits and -_. alone: nothing in them is ever encoded.
const named = /^\/publish\/([^/]+)/.exec(location.pathname)?.[1] ?? "";

/** Whether the status takes a token, which this page has not: then it knows what is configured, and nothing of what happens. */
let guarded = false;

async function ask(path) {
  const response = await fetch(path, { cache: "no-store", signal: AbortSignal.timeout(2000) });
  guarded ||= response.status === 401;
  return response.ok ? response.json() : {};
}

/** Leaves what was known in place when the server does not answer, and forgets it: `endpoints` is null then. */
async function readStatus() {
  try {
    let status = guarded ? {} : await ask("/api/status");
    if (guarded) status = await ask("/api/endpoints");
    endpoints = Array.isArray(status.endpoints) ? status.endpoints : null;
    channels = Array.isArray(status.channels) ? status.channels : [];
  } catch {
    endpoints = null;
    channels = [];
  }
  showEndpoints();
  showChannels();
}

function showEndpoints() {
  const select = $("endpoint");
  const names = endpoints?.map(({ name }) => name) ?? [];
  const now = select.value || named;
  // One that is named in the address stays choosable: the server says in words if there is none.
  if (now && !names.includes(now)) names.unshift(now);
  if (!names.length) names.push("live");
  const old = [...select.options].map(({ value }) => value);
  if (old.join("\n") !== names.join("\n")) {
    select.replaceChildren(...names.map((name) => new Option(name)));
    select.value = now || names[0];
  }
  showWatch();
}

function showWatch() {
  const endpoint = chosen();
  const name = $("endpoint").value;
  const slots = endpoint?.slots?.length ? endpoint.slots : [{ feed: `/live/${name}.ts` }];
  const address = ({ feed }) => new URL(feed ?? `/live/${name}.ts`, location.href).href;
  const viewers = endpoint?.slots?.reduce((sum, slot) => sum + (slot.viewers ?? 0), 0);
  $("viewers").textContent = viewers ?? "–";

  const rows = rowsOf($("slots"), slots.length);
  slots.forEach((slot, index) => {
    const words = [];
    if (slots.length > 1) words.push(`Slot ${index + 1}`);
    if (slot.state) words.push(slot.state === "held" ? "on air" : "free");
    if (slot.viewers !== undefined) words.push(viewersIn(slot));
    showRow(rows[index], address(slot), words);
  });
  const url = address(slots[0]);
  const commands = [`ffplay -fflags nobuffer '${url}'`, `mpv --profile=low-latency '${url}'`, `vlc '${url}'`].join("\n");
  if ($("commands").textContent !== commands) $("commands").textContent = commands;
}

function showChannels() {
  $("channels").hidden = channels.length === 0;
  const rows = rowsOf($("channel-list"), channels.length);
  channels.forEach(({ name, feed, state, kept, beside, viewers }, index) => {
    const from = (kept ?? beside)?.label;
    const words = [name, CHANNEL_STATES[state] ?? state];
    if (from) words.push(`from ${from}`);
    if (viewers !== undefined) words.push(viewersIn({ viewers }));
    rows[index].dataset.state = state;
    showRow(rows[index], new URL(feed ?? `/live/${name}.ts`, location.href).href, words);
  });
}

const viewersIn = ({ viewers }) => (viewers === 1 ? "1 viewer" : `${viewers} viewers`);

/** As many rows as are wanted; those that stay keep what a person has selected in them. */
function rowsOf(list, count) {
  while (list.children.length > count) list.lastChild.remove();
  while (list.children.length < count) list.append(slotRow());
  return list.children;
}

function showRow(row, address, words) {
  const [code, , note] = row.children;
  if (code.textContent !== address) code.textContent = address;
  note.textContent = words.join(" · ");
}

function slotRow() {
  const row = Object.assign(document.createElement("div"), { className: "slot" });
  const code = document.createElement("code");
  const copy = Object.assign(document.createElement("button"), { type: "button", textContent: "Copy" });
  copy.addEventListener("click", async () => {
    await copyText(code);
    copy.textContent = "Copied";
    setTimeout(() => (copy.textContent = "Copy"), 1500);
  });
  row.append(code, copy, document.createElement("p"));
  return row;
}

/** Outside of secure contexts there is no clipboard: the address is selected then, for Ctrl+C. */
async function copyText(element) {
  try {
    await navigator.clipboard.writeText(element.textContent);
  } catch {
    getSelection().selectAllChildren(element);
  }
}

// ---- wiring ---------------------------------------------------------------------------------------------------------

publisher.addEventListener("change", () => {
  show();
  showFigures();
  keepAwake();
  if (publisher.reason === "http-401") $("token").focus();
});
$("go").addEventListener("click", () => (publisher.active ? publisher.stop() : publish()));
$("retry").addEventListener("click", () => publisher.retryNow());
$("show").addEventListener("click", () => rechoose());
$("mute").addEventListener("click", () => {
  const muted = $("mute").getAttribute("aria-pressed") !== "true";
  $("mute").setAttribute("aria-pressed", muted);
  $("mute").textContent = muted ? "Muted" : "Mute";
  for (const track of stream?.getAudioTracks() ?? []) track.enabled = !muted;
});
$("settings").addEventListener("submit", (event) => {
  event.preventDefault();
  if (!publisher.active) publish();
});
$("settings").addEventListener("change", ({ target }) => {
  if (target.id === "token") return;
  show();
  if (stream) rechoose();
});
$("endpoint").addEventListener("change", () => {
  history.replaceState(null, "", `/publish/${$("endpoint").value}${location.search}`);
  for (const kind of ["video", "audio"]) $(kind).checked = true;
  showWatch();
  show();
});

/** One change after the other: two captures at once would leave a camera on that nobody shows. */
function rechoose() {
  choosing = choosing.then(choose).catch((error) => {
    // On air the old picture and sound stay, if they are still there.
    if (stream?.active && publisher.active) return;
    forget();
    publisher.fail(error.reason ?? error.name);
  });
}

addEventListener("online", () => publisher.networkChanged());
// Its event also comes with every new estimate of the bandwidth; only another kind of network is another way.
let network = navigator.connection?.type;
navigator.connection?.addEventListener("change", () => {
  if (navigator.connection.type === network) return;
  network = navigator.connection.type;
  if (network !== "none") publisher.networkChanged();
});
addEventListener("pagehide", () => publisher.active && publisher.stop());
document.addEventListener("visibilitychange", keepAwake);
navigator.mediaDevices?.addEventListener("devicechange", () => {
  listDevices();
  // A kiosk whose camera comes back has nobody to press the button.
  if (auto && publisher.state === "failed" && publisher.reason === "capture-ended") publish();
});

Object.defineProperty(window, "holdfast", {
  value: Object.freeze({
    get state() { return publisher.state; },
    get reason() { return publisher.reason; },
    get session() { return publisher.session; },
    get posts() { return publisher.posts; },
    get connectedAt() { return publisher.connectedAt; },
  }),
});

if (query.has("token")) $("token").value = query.get("token");
for (const kind of ["video", "audio"]) $(kind).checked = query.get(kind) !== "0";
for (const input of document.querySelectorAll("input[name=source]")) {
  if (input.value === query.get("source")) input.checked = true;
  if (input.value === "screen" && !navigator.mediaDevices?.getDisplayMedia) input.disabled = true;
}
showEndpoints();
show();
listDevices();
setInterval(showLevel, 50);
setInterval(count, 250);
setInterval(showFigures, 1000);
setInterval(async () => {
  if (document.visibilityState === "hidden" && !auto) return;
  await readStatus();
  show();
  // A kiosk has nobody to press the button. A slot that is free is taken from nobody.
  // Where an operator ended it, only a person may ask again.
  const rejoins = publisher.state === "displaced" && publisher.reason !== "kicked";
  if (auto && rejoins && chosen()?.slots?.some(isFree)) publish();
}, 2000);
await readStatus();
show();
if (auto) publish();
