// What the page says. Each state has a title; each reason a sentence that says what happened and what follows.

export const STATES = {
  idle: ["Ready", "Nothing is being sent."],
  asking: ["Waiting for permission", "Allow the camera and microphone in the browser’s prompt."],
  connecting: ["Connecting", "Asking the server for a slot."],
  waiting: [
    "Waiting for the slot",
    "Its last publisher has fallen silent. The server makes sure that it is gone before it gives you the slot; this takes a few seconds.",
  ],
  publishing: ["Live", "The server receives you."],
  reconnecting: ["Reconnecting", "You are off air. The page comes back by itself."],
  refused: ["Not accepted", "The server did not accept this publisher."],
  displaced: ["Displaced", "You are off air. Another publisher has the slot."],
  failed: ["Cannot publish", "Something on this side has to change first."],
  stopped: ["Stopped", "Nothing is being sent."],
};

export const CHANNEL_STATES = {
  off: "plays when somebody watches",
  opening: "asking its source",
  live: "live",
  silent: "its source is silent",
  waiting: "no source can be had, trying again",
  ended: "its source has ended",
};

const REASONS = {
  // The server's, about the slot.
  "holder-live": "Somebody else is on air here, and alive. You go on air as soon as they stop.",
  "holder-negotiating": "Somebody else is just connecting here. You go on air if they do not.",
  "holder-without-audio": "Somebody else is on air here without sound, so their silence proves nothing. You go on air as soon as they stop.",
  "takeover-timeout": "The server could not make out in time whether the last publisher is gone.",
  "no-room": "As many publishers are coming and going as the server takes at once.",
  "too-many-waiting": "Too many publishers are waiting for this slot already.",
  ended: "The server ended this session before it began.",
  draining: "The server is shutting down and takes nobody new. You go on air when it is back.",
  displaced: "Another publisher took over this slot because the server had not received anything from this page for some seconds, or because its rules favour the newest.",
  kicked: "An operator of the server ended this session.",
  // HTTP's.
  "http-400": "The server did not understand the request.",
  "http-401": "This endpoint needs a token. Enter it below and publish again.",
  "wrong-token": "This endpoint does not know this token. Correct it below and publish again.",
  "http-403": "This token may not publish here.",
  "http-404": "There is no endpoint of this name on this server.",
  "http-405": "This address does not take publishers.",
  "http-413": "The browser’s offer is longer than the server accepts.",
  "http-415": "The server does not take this kind of request; it may not be a WHIP endpoint.",
  "http-422": "The server cannot take what this browser offers.",
  "http-429": "The server got too many requests from here.",
  "http-503": "The server is busy.",
  // The connection's.
  network: "The server does not answer. Check the network, or wait: the page keeps trying.",
  disconnected: "Nothing comes back from the server any more.",
  "no-path": "The server answered, but no media gets through. A firewall may block UDP.",
  failed: "The connection was lost.",
  closed: "The server closed the connection.",
  gone: "The server has ended this session.",
  "bad-answer": "The server’s answer cannot be used by this browser.",
  "no-h264": "This browser cannot send H.264, which the server needs.",
  browser: "The browser refused.",
  // The devices'.
  NotAllowedError: "The browser did not allow the camera, microphone or screen. Allow it in the address bar, then publish again.",
  NotFoundError: "No camera or microphone was found.",
  NotReadableError: "The camera or microphone is in use by another program, or does not answer.",
  OverconstrainedError: "The camera cannot do what was chosen. Choose another one or another resolution.",
  AbortError: "The camera or microphone could not be started.",
  insecure: "Browsers give the camera only to pages from https:// or from this same computer (localhost).",
  nothing: "Choose sound, picture or both.",
  "capture-ended": "The camera, microphone or screen was switched off.",
};

/** The sentence for a state and reason. `detail`, the server's own words, is added where ours cannot know more. */
export function explain({ state, reason, detail }) {
  const known = REASONS[reason];
  const [, sentence] = STATES[state];
  if (!reason) return sentence;
  const unknown = detail || `The server answered with “${reason}”.`;
  const addDetail = ["http-400", "http-422", "bad-answer", "browser"].includes(reason) && detail;
  const text = known ? (addDetail ? `${known} It says: ${detail}` : known) : unknown;
  return state === "reconnecting" || state === "displaced" ? `You are off air. ${text}` : text;
}
