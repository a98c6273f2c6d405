// Draws lanes on a canvas: only those that can be seen, and of each pixel only what shows.

const HEADING = 26, STRIP = 40, TALL = 40, LOW = 21, AXIS = 26;
const canvas = document.getElementById('canvas'), scroller = document.getElementById('scroll');
const pen = canvas.getContext('2d', { alpha: false });

// A little more than there is, so that what stands at either end is seen whole.
const MARGIN = story.length / 120, FIRST = -MARGIN, LAST = story.length + MARGIN, WHOLE = LAST - FIRST;

// Where there are many, a group is first shown as one strip, so that all groups are seen at once.
function isCrowd(group) {
  const most = story.lanes.length > 150 && group.name !== 'Endpoints' ? 12 : 40;
  return group.lanes.length > most;
}

const view = {
  from: FIRST, to: LAST, width: 0, height: 0, label: 150,
  rows: [], total: 0, folded: new Set(story.groups.filter(isCrowd).map((group) => group.index)),
  hidden: new Set(), query: '', call: null, chosen: null, hovered: null, stretch: null,
};

let look = {};
function readColours() {
  const style = getComputedStyle(document.documentElement);
  const of = (name) => style.getPropertyValue(name).trim();
  look = { states: story.states.map((_, i) => of(`--s${i}`)), weights: [0, 1, 2, 3].map((i) => of(`--w${i}`)) };
  for (const name of ['ground', 'surface', 'band', 'line', 'edge', 'text', 'quiet', 'focus', 'broken', 'on']) look[name] = of(`--${name}`);
  look.fills = look.states.map((colour, state) => filling(colour, state));
}

// States that a colour alone would not tell apart have a pattern, too.
function filling(colour, state) {
  const word = story.states[state][0];
  if (!['waits', 'dead', 'pause', 'closing'].includes(word)) return colour;
  const tile = document.createElement('canvas');
  tile.width = tile.height = 8;
  const ink = tile.getContext('2d');
  ink.fillStyle = colour;
  ink.fillRect(0, 0, 8, 8);
  ink.strokeStyle = look.surface || '#fff';
  ink.globalAlpha = word === 'dead' ? 0.45 : 0.6;
  ink.lineWidth = 2;
  ink.beginPath();
  if (word === 'pause') { ink.moveTo(0, 4); ink.lineTo(8, 4); } else {
    for (const shift of [-8, 0, 8]) {
      if (word === 'waits') { ink.moveTo(shift, 8); ink.lineTo(shift + 8, 0); } else { ink.moveTo(shift, 0); ink.lineTo(shift + 8, 8); }
    }
  }
  ink.stroke();
  return pen.createPattern(tile, 'repeat');
}

const isTall = (group) => group.name === 'Endpoints' || group.name === 'Channels' || group.name === 'Edge';

// Which rows there are, from top to bottom, in order of groups.
function arrange() {
  const rows = [];
  let y = 0;
  const push = (row, height) => { rows.push({ ...row, y, height }); y += height; };
  for (const group of story.groups) {
    if (view.hidden.has(group.index)) continue;
    const found = view.query === '' ? group.lanes : group.lanes.filter((lane) => lane.found);
    if (found.length === 0) continue;
    const folded = view.query === '' && view.folded.has(group.index);
    push({ kind: 'heading', group, count: found.length, folded }, HEADING);
    if (folded) {
      push({ kind: 'strip', group }, STRIP);
      if (view.chosen && view.chosen.lane.group === group.index) push({ kind: 'lane', group, lane: view.chosen.lane }, TALL);
    } else {
      const tall = isTall(group) || found.length <= 6;
      for (const lane of found) push({ kind: 'lane', group, lane }, tall ? TALL : LOW);
    }
    y += 4;
  }
  view.rows = rows;
  view.total = y + AXIS + 8;
  document.getElementById('room').style.height = `${Math.max(0, view.total - view.height)}px`;
}

const x = (time) => view.label + (time - view.from) / (view.to - view.from) * (view.width - view.label);
const time = (at) => view.from + (at - view.label) / (view.width - view.label) * (view.to - view.from);

const NICE = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 1e4, 2e4, 5e4, 1e5, 2e5, 5e5, 1e6, 2e6, 5e6, 1e7, 1.5e7, 3e7, 6e7, 12e7, 3e8, 6e8, 9e8, 18e8, 36e8, 72e8, 144e8, 216e8, 432e8, 864e8];

function tickStep(pixels) {
  const least = (view.to - view.from) / Math.max(1, (view.width - view.label) / pixels);
  return NICE.find((step) => step >= least) ?? 864e8 * Math.ceil(least / 864e8);
}

function fit(text, room) {
  if (room < 12) return '';
  if (pen.measureText(text).width <= room) return text;
  let low = 0, high = text.length;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (pen.measureText(`${text.slice(0, middle)}…`).width <= room) low = middle; else high = middle - 1;
  }
  return low === 0 ? '' : `${text.slice(0, low)}…`;
}

let due = false;
function redraw() {
  if (due) return;
  due = true;
  requestAnimationFrame(() => { due = false; draw(); });
}

const FONT = (size, weight = 400) => `${weight} ${size}px system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif`;

function draw() {
  const top = scroller.scrollTop;
  pen.fillStyle = look.surface;
  pen.fillRect(0, 0, view.width, view.height);
  pen.textBaseline = 'middle';
  grid();
  for (const row of view.rows) {
    const y = row.y - top + AXIS;
    if (y > view.height) break;
    if (y + row.height < AXIS) continue;
    if (row.kind === 'heading') heading(row, y);
    else if (row.kind === 'strip') strip(row, y);
    else drawLane(row, y);
  }
  if (view.rows.length === 0) {
    pen.fillStyle = look.quiet;
    pen.font = FONT(14);
    pen.fillText(view.query ? 'Nothing has this name.' : 'Nothing is shown.', 12, AXIS + 24);
  }
  moment();
  drawBroken();
  axis();
  if (view.stretch) {
    const [a, b] = [Math.min(...view.stretch), Math.max(...view.stretch)];
    pen.globalAlpha = 0.2;
    pen.fillStyle = look.focus;
    pen.fillRect(a, AXIS, b - a, view.height);
    pen.globalAlpha = 1;
  }
}

function grid() {
  const step = tickStep(90);
  pen.fillStyle = look.line;
  for (let at = Math.ceil(Math.max(0, view.from + story.begin) / step) * step - story.begin; at <= view.to; at += step) {
    pen.fillRect(Math.round(x(at)), AXIS, 1, view.height);
  }
}

function axis() {
  const step = tickStep(90);
  pen.fillStyle = look.surface;
  pen.fillRect(0, 0, view.width, AXIS);
  pen.fillStyle = look.edge;
  pen.fillRect(0, AXIS - 1, view.width, 1);
  pen.font = FONT(11.5);
  pen.fillStyle = look.quiet;
  for (let at = Math.ceil(Math.max(0, view.from + story.begin) / step) * step - story.begin; at <= view.to; at += step) {
    const left = Math.round(x(at));
    pen.fillRect(left, AXIS - 6, 1, 5);
    const text = absolute(at, step), half = pen.measureText(text).width / 2;
    if (left - half > view.label - 8 && left + half < view.width) pen.fillText(text, left - half, AXIS / 2 - 1);
  }
  pen.fillStyle = look.surface;
  pen.fillRect(0, 0, view.label - 10, AXIS - 1);
  pen.fillStyle = look.quiet;
  pen.fillText(fit(`${lasting(view.to - view.from)} shown`, view.label - 16), 8, AXIS / 2 - 1);
}

// What was going on everywhere else when what is chosen happened.
function moment() {
  const { chosen } = view;
  if (!chosen) return;
  const at = x(chosen.kind === 'mark' ? chosen.lane.at[chosen.i] : chosen.lane.from[chosen.i]);
  if (at < view.label) return;
  pen.fillStyle = look.focus;
  pen.globalAlpha = 0.7;
  pen.fillRect(Math.round(at), AXIS, 1, view.height);
  pen.globalAlpha = 1;
}

function drawBroken() {
  if (!story.broken) return;
  const [at, id] = story.broken, left = x(at);
  if (left < view.label - 1 || left > view.width + 1) return;
  const line = Math.min(Math.round(left), view.width - 2);
  pen.fillStyle = look.broken;
  pen.fillRect(line - 1, AXIS, 2, view.height);
  pen.font = FONT(12, 650);
  const width = pen.measureText(id).width + 12, from = Math.min(line - 1, view.width - width);
  pen.fillRect(from, AXIS, width, 18);
  pen.fillStyle = '#fff';
  pen.fillText(id, from + 6, AXIS + 9.5);
}

function heading(row, y) {
  pen.fillStyle = look.band;
  pen.fillRect(0, y, view.width, row.height);
  pen.fillStyle = look.line;
  pen.fillRect(0, y, view.width, 1);
  pen.fillStyle = look.text;
  pen.font = FONT(12.5, 650);
  const name = `${row.folded ? '▸' : '▾'} ${row.group.name}`;
  pen.fillText(name, 8, y + row.height / 2 + 1);
  const after = 8 + pen.measureText(name).width + 8;
  pen.font = FONT(12);
  pen.fillStyle = look.quiet;
  const lanes = row.count === 1 ? '1 lane' : `${row.count} lanes`;
  pen.fillText(row.folded ? `${lanes}, how many are in which state at once — click to show each` : lanes, after, y + row.height / 2 + 1);
}

function label(text, y, height, strong) {
  pen.fillStyle = look.text;
  pen.font = FONT(12.5, strong ? 600 : 400);
  pen.fillText(fit(text, view.label - 18), 10, y + height / 2 + 1);
}

function drawLane(row, y) {
  const { lane, height } = row, tall = height >= TALL;
  const bar = tall ? 20 : 13, topOf = y + (tall ? 3 : 4);
  const chosen = view.chosen && view.chosen.lane === lane;
  if (chosen) {
    pen.globalAlpha = 0.1;
    pen.fillStyle = look.focus;
    pen.fillRect(0, y, view.width, height);
    pen.globalAlpha = 1;
  }
  pen.fillStyle = look.line;
  pen.fillRect(view.label, topOf + bar / 2, view.width - view.label, 1);
  pen.save();
  pen.beginPath();
  pen.rect(view.label, y, view.width - view.label, height);
  pen.clip();
  pen.font = FONT(tall ? 11.5 : 10.5);
  let drawn = -1, named = -1;
  for (let i = beyond(lane.to, view.from); i < lane.n && lane.from[i] <= view.to; i++) {
    const left = Math.max(x(lane.from[i]), view.label - 4), right = Math.min(x(lane.to[i]), view.width + 4);
    // Where many end within one pixel, the worst of them is not hidden by the last.
    if (right <= drawn && lane.state[i] !== 4) continue;
    const width = Math.max(right - left, 1);
    pen.fillStyle = look.fills[lane.state[i]];
    pen.globalAlpha = view.query !== '' && lane.matched && !lane.matched(i) ? 0.25 : 1;
    pen.fillRect(left, topOf, width, bar);
    drawn = Math.max(drawn, left + 1);
    if (width > 30) {
      // Whose it is stands once on each tenancy, where there is room; how it goes on is said behind that.
      const goesOn = named === lane.who[i] && i > 0 && lane.who[i - 1] === named && lane.to[i - 1] === lane.from[i];
      const words = goesOn ? story.states[lane.state[i]][0] : story.texts[lane.who[i]];
      if (caption(words, Math.max(left, view.label) + 5, topOf + bar / 2 + 1, right - Math.max(left, view.label) - 8, lane.state[i]) && !goesOn) named = lane.who[i];
    }
    // Where one tenancy follows another at once, it can be seen that it does.
    if (i > 0 && lane.who[i - 1] !== lane.who[i] && width > 3) {
      pen.fillStyle = look.surface;
      pen.fillRect(left, topOf, 1.5, bar);
    }
    pen.globalAlpha = 1;
  }
  marks(lane, y, topOf, bar, tall);
  chosenOn(lane, topOf, bar);
  pen.restore();
  label(lane.name, y, tall ? 28 : height, tall);
}

const PATTERNED = new Set([0, 4, 5, 6]);
function caption(words, left, middle, room, state) {
  // An id alone says more than half a word.
  const short = /\d+(\.\d+)?/.exec(words)?.[0] ?? '';
  const text = short !== '' && pen.measureText(words).width > room && pen.measureText(short).width <= room ? short : fit(words, room);
  if (text === '') return false;
  if (PATTERNED.has(state)) {
    pen.fillStyle = look.states[state];
    pen.fillRect(left - 2, middle - 8, pen.measureText(text).width + 4, 14);
  }
  pen.fillStyle = look.on;
  pen.fillText(text, left, middle);
  return true;
}

function marks(lane, y, topOf, bar, tall) {
  const first = Math.max(0, beyond(lane.at, view.from) - 1), seen = [];
  for (const weight of [0, 1, 2, 3]) {
    let drawn = -10;
    for (let i = first; i < lane.m && lane.at[i] <= view.to; i++) {
      if (lane.weight[i] !== weight || lane.at[i] < view.from) continue;
      const at = x(lane.at[i]);
      if (tall) seen.push([weight, at, i]);
      if (at - drawn < (weight === 0 ? 1 : 1.5)) continue;
      drawn = at;
      glyph(weight, at, topOf + bar);
    }
  }
  if (!tall) return;
  // In words where there is room, what matters most first.
  seen.sort((a, b) => b[0] - a[0] || a[1] - b[1]);
  const taken = [];
  pen.font = FONT(11, 500);
  for (const [weight, at, i] of seen.slice(0, 400)) {
    const words = story.texts[lane.word[i]], width = pen.measureText(words).width;
    const left = Math.max(view.label + 1, Math.min(at - 3, view.width - width - 3));
    if (taken.some((other) => left < other.to + 8 && left + width + 8 > other.from)) continue;
    taken.push({ from: left, to: left + width, weight, words, i });
  }
  taken.sort((a, b) => a.from - b.from);
  taken.forEach(({ from, to, weight, words, i }, place) => {
    pen.font = FONT(11, 500);
    pen.fillStyle = look.weights[weight];
    pen.fillText(words, from, topOf + bar + 9.5);
    const room = (taken[place + 1]?.from ?? view.width) - to - 20;
    if (weight === 0 || room < 90) return;
    pen.font = FONT(11);
    pen.fillStyle = look.quiet;
    pen.fillText(fit(story.texts[lane.because[i]], room), to + 7, topOf + bar + 9.5);
  });
}

function glyph(weight, at, bottom) {
  pen.fillStyle = look.weights[weight];
  const y = bottom - 1;
  pen.beginPath();
  if (weight === 0) { pen.rect(at - 0.75, y - 7, 1.5, 8); }
  else if (weight === 1) { pen.moveTo(at - 5, y + 3); pen.lineTo(at + 5, y + 3); pen.lineTo(at, y - 6); }
  else if (weight === 2) { pen.moveTo(at, y - 9); pen.lineTo(at + 6, y - 2); pen.lineTo(at, y + 5); pen.lineTo(at - 6, y - 2); }
  else { pen.arc(at, y - 2, 4.5, 0, 7); }
  pen.closePath();
  if (weight > 0) {
    pen.strokeStyle = look.surface;
    pen.lineWidth = 2;
    pen.stroke();
  }
  pen.fill();
}

function chosenOn(lane, topOf, bar) {
  for (const [what, width] of [[view.hovered, 1.5], [view.chosen, 2.5]]) {
    if (!what || what.lane !== lane) continue;
    pen.strokeStyle = look.text;
    pen.lineWidth = width;
    if (what.kind === 'mark') {
      pen.beginPath();
      pen.arc(x(lane.at[what.i]), topOf + bar - 3, 9, 0, 7);
      pen.stroke();
    } else {
      const left = Math.max(x(lane.from[what.i]), view.label), right = Math.min(x(lane.to[what.i]), view.width);
      pen.strokeRect(left, topOf, Math.max(right - left, 2), bar);
    }
  }
}

// Of a folded group: how many of its lanes stand how, by pixel; what lasts for less than one counts for as much of it.
const densities = new Map();
function density(group) {
  const width = Math.max(1, Math.round(view.width - view.label)), key = `${view.from} ${view.to} ${width}`;
  const known = densities.get(group.index);
  if (known && known.key === key) return known;
  const counts = story.states.map(() => new Float64Array(width + 2)), scale = width / (view.to - view.from);
  const bad = new Uint32Array(width);
  for (const lane of group.lanes) {
    for (let i = beyond(lane.to, view.from); i < lane.n && lane.from[i] < view.to; i++) {
      const from = Math.max(0, (lane.from[i] - view.from) * scale), to = Math.min(width, (lane.to[i] - view.from) * scale);
      const own = counts[lane.state[i]], first = Math.floor(from), last = Math.floor(to);
      // As changes from one pixel to the next, which are summed up below.
      const begun = first + 1 - from, ended = to - last;
      own[first] += begun;
      own[first + 1] += 1 - begun;
      own[last] -= 1 - ended;
      own[last + 1] -= ended;
    }
    for (let i = beyond(lane.at, view.from); i < lane.m && lane.at[i] < view.to; i++) {
      if (lane.weight[i] === 2) bad[Math.min(width - 1, Math.floor((lane.at[i] - view.from) * scale))]++;
    }
  }
  let most = 1, worst = 0;
  const sums = new Float64Array(width);
  for (const own of counts) for (let p = 0, sum = 0; p < width; p++) { sum += own[p]; own[p] = Math.max(0, sum); sums[p] += own[p]; }
  for (let p = 0; p < width; p++) { most = Math.max(most, sums[p]); worst = Math.max(worst, bad[p]); }
  const made = { key, width, counts, bad, most, worst };
  densities.set(group.index, made);
  return made;
}

function strip(row, y) {
  const { counts, width, most, bad, worst } = density(row.group), full = row.height - 12, base = y + row.height - 10;
  const under = new Float64Array(width);
  counts.forEach((own, state) => {
    pen.fillStyle = look.states[state];
    // Runs of the same height at once.
    for (let p = 0; p < width;) {
      let q = p + 1;
      while (q < width && own[q] === own[p] && under[q] === under[p]) q++;
      if (own[p] > 0.001) {
        const height = own[p] / most * full;
        pen.fillRect(view.label + p, base - under[p] - height, q - p, height);
      }
      p = q;
    }
    for (let p = 0; p < width; p++) under[p] += own[p] / most * full;
  });
  pen.fillStyle = look.weights[2];
  for (let p = 0; p < width; p++) if (bad[p] > 0) pen.fillRect(view.label + p, base + 2, 1, 2 + 5 * bad[p] / worst);
  label(`up to ${Math.round(most)} at once`, y, row.height - 8, false);
}
