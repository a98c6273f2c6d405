// The little SDP a WHIP client has to write and read itself: trickle fragments (RFC 8840) and the answer to an ICE
// restart (RFC 9725, 4.3.3). Everything else is the browser's.

const lines = (sdp) => sdp.split(/\r?\n/).filter(Boolean);
const value = (list, name) => list.find((line) => line.startsWith(`a=${name}:`))?.slice(name.length + 3);

/** The username fragment of the first section that has one, or undefined. */
export function ufragOf(sdp) {
  return value(lines(sdp), "ice-ufrag");
}

/**
 * A fragment for PATCH: the BUNDLE's first section with its credentials and these candidates.
 * `candidates` are the strings of RTCIceCandidate.candidate, without `a=`.
 */
export function fragment(localSdp, candidates, complete) {
  const all = lines(localSdp);
  const first = all.findIndex((line) => line.startsWith("m="));
  const next = all.findIndex((line, index) => index > first && line.startsWith("m="));
  const section = all.slice(first, next < 0 ? undefined : next);
  const [kind, , protocol, format] = section[0].split(" ");
  // Credentials may stand at session level, where they hold for every section.
  const credential = (name) => value(section, name) ?? value(all, name);
  const out = [
    ...all.filter((line) => line.startsWith("a=group:BUNDLE")),
    `${kind} 9 ${protocol} ${format}`,
    `a=mid:${value(section, "mid")}`,
    `a=ice-ufrag:${credential("ice-ufrag")}`,
    `a=ice-pwd:${credential("ice-pwd")}`,
    ...candidates.map((candidate) => `a=${candidate}`),
  ];
  if (complete) out.push("a=end-of-candidates");
  return out.join("\r\n") + "\r\n";
}

/**
 * The answer that holds after an ICE restart: the old one with the fragment's credentials, and its candidates instead
 * of the old ones. Returns null if the fragment has no credentials.
 */
export function restarted(answerSdp, fragmentSdp) {
  const given = lines(fragmentSdp);
  const ufrag = value(given, "ice-ufrag");
  const pwd = value(given, "ice-pwd");
  if (!ufrag || !pwd) return null;
  const candidates = given.filter((line) => line.startsWith("a=candidate:") || line === "a=end-of-candidates");
  const out = [];
  let sections = 0;
  for (const line of lines(answerSdp)) {
    if (line.startsWith("a=candidate:") || line === "a=end-of-candidates") continue;
    // Candidates belong to the first section, the one that carries the BUNDLE.
    if (line.startsWith("m=") && ++sections === 2) out.push(...candidates);
    if (line.startsWith("a=ice-ufrag:")) out.push(`a=ice-ufrag:${ufrag}`);
    else if (line.startsWith("a=ice-pwd:")) out.push(`a=ice-pwd:${pwd}`);
    else out.push(line);
  }
  if (sections === 1) out.push(...candidates);
  return out.join("\r\n") + "\r\n";
}

/**
 * ICE servers from a `Link` header (RFC 9725, 4.6):
 * `<turn:host?transport=udp>; rel="ice-server"; username="u"; credential="p"`, several separated by commas.
 */
export function iceServers(link) {
  const servers = [];
  for (const [, url, parameters] of (link ?? "").matchAll(/<([^>]*)>((?:\s*;\s*[\w-]+\s*=\s*(?:"[^"]*"|[^",;\s]+))*)/g)) {
    const given = Object.fromEntries(
      [...parameters.matchAll(/([\w-]+)\s*=\s*(?:"([^"]*)"|([^",;\s]+))/g)].map(([, name, quoted, plain]) => [name, quoted ?? plain]),
    );
    if (given.rel !== "ice-server" || !/^(stun|turn)s?:/.test(url)) continue;
    servers.push(given.username ? { urls: url, username: given.username, credential: given.credential } : { urls: url });
  }
  return servers;
}
