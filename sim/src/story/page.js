// What somebody does with it: zoom, pan, search, choose.

const byId = (id) => document.getElementById(id);
const overview = byId('overview'), tip = byId('tip'), detail = byId('detail');

// By text: whether it has what is searched for.
const hit = new Uint8Array(story.texts.length);

function search(query) {
  view.query = query.trim().toLowerCase();
  const { query: wanted } = view;
  // A call by its number, as `holdfast replay` prints it.
  const number = /^#(\d+)$/.exec(wanted);
  view.call = number ? Number(number[1]) : null;
  if (wanted !== '') story.texts.forEach((text, i) => { hit[i] = text.toLowerCase().includes(wanted) ? 1 : 0; });
  let found = 0;
  for (const lane of story.lanes) {
    lane.named = wanted !== '' && lane.name.toLowerCase().includes(wanted);
    lane.matched = wanted === '' || lane.named ? null : (i) => hit[lane.who[i]] === 1;
    lane.found = lane.named || (wanted !== '' && (lane.who.some((who) => hit[who] === 1) || lane.word.some((word) => hit[word] === 1) || lane.call.includes(view.call)));
    if (lane.found && !view.hidden.has(lane.group)) found++;
  }
  byId('found').textContent = wanted === '' ? '' : said(found);
  scroller.scrollTop = 0;
  arrange();
  list.filter();
  redraw();
}

// How much was found. Most calls change nothing that is drawn: then which of those that do are next to it.
function said(found) {
  if (found > 0) return found === 1 ? 'in 1 lane' : `in ${found} lanes`;
  if (view.call === null) return 'nothing found';
  if (story.lanes.some((lane) => lane.call.includes(view.call))) return 'in what is switched off';
  if (view.call < 1 || view.call > story.calls) return `there are ${many(story.calls, 'call')}`;
  let before = 0, after = Infinity;
  for (const { lane, i } of story.marks) {
    if (lane.call[i] < view.call) before = Math.max(before, lane.call[i]);
    if (lane.call[i] > view.call) after = Math.min(after, lane.call[i]);
  }
  const next = [before, after].filter((call) => call > 0 && call < Infinity).map((call) => `#${call}`).join(' and ');
  return `nothing is drawn of #${view.call}${next === '' ? '' : `, next to it of ${next}`}`;
}

// Shows the stretch in which what was found is.
function showFound() {
  let from = Infinity, to = -Infinity;
  const take = (a, b) => { from = Math.min(from, a); to = Math.max(to, b); };
  for (const lane of story.lanes) {
    if (!lane.found) continue;
    for (let i = 0; i < lane.n; i++) if (!lane.matched || lane.matched(i)) take(lane.from[i], lane.to[i]);
    for (let i = 0; i < lane.m; i++) if (!lane.matched || hit[lane.word[i]] === 1 || lane.call[i] === view.call) take(lane.at[i], lane.at[i]);
  }
  if (from <= to) show(from - (to - from) * 0.05 - LEAST, to + (to - from) * 0.05 + LEAST);
}

// --- time -------------------------------------------------------------------------------------------------------------

const LEAST = Math.min(1000, story.length);
function show(from, to) {
  const length = Math.min(WHOLE, Math.max(LEAST, to - from));
  view.from = Math.max(FIRST, Math.min(from, LAST - length));
  view.to = view.from + length;
  hideTip();
  redraw();
  drawOverview();
}

const zoom = (factor, around = (view.from + view.to) / 2) => show(around - (around - view.from) * factor, around + (view.to - around) * factor);
const pan = (by) => show(view.from + by, view.to + by);

// --- the whole story in one strip -------------------------------------------------------------------------------------

let bins = null;
// It stands above the lanes, pixel by pixel as they would with everything shown.
const place = (time) => view.label + (time - FIRST) / WHOLE * (view.width - view.label);
const placed = (px) => FIRST + (px - view.label) / Math.max(1, view.width - view.label) * WHOLE;

function drawOverview() {
  const { width: all, height } = fitCanvas(overview), ink = overview.getContext('2d'), { width } = view;
  if (!bins || bins.width !== width || bins.label !== view.label) count(width);
  ink.fillStyle = look.surface;
  ink.fillRect(0, 0, all, height);
  ink.font = FONT(11.5);
  ink.fillStyle = look.quiet;
  ink.textBaseline = 'middle';
  ink.fillText('everything', 10, height / 2);
  ink.fillStyle = look.line;
  for (let p = view.label; p < width; p++) { const h = bins.busy[p] / bins.most * (height - 6); ink.fillRect(p, height - h, 1, h); }
  // What was lost stands highest, however much else there is.
  for (const [weight, least, most] of [[3, 3, 14], [1, 3, 18], [2, 16, height - 8]]) {
    ink.fillStyle = look.weights[weight];
    ink.globalAlpha = weight === 2 ? 1 : 0.65;
    for (let p = view.label; p < width; p++) {
      if (bins.of[weight][p] === 0) continue;
      const h = least + (most - least) * Math.log1p(bins.of[weight][p]) / Math.log1p(bins.worst[weight] + 3);
      ink.fillRect(p, height - h, 1.5, h);
    }
  }
  ink.globalAlpha = 1;
  if (story.broken) {
    ink.fillStyle = look.broken;
    ink.fillRect(Math.min(width - 3, place(story.broken[0]) - 1), 0, 3, height);
  }
  const from = place(view.from), to = place(view.to);
  ink.fillStyle = look.ground;
  ink.globalAlpha = 0.72;
  ink.fillRect(view.label, 0, from - view.label, height);
  ink.fillRect(to, 0, width - to, height);
  ink.globalAlpha = 1;
  ink.strokeStyle = look.focus;
  ink.lineWidth = 2;
  ink.strokeRect(from + 1, 1, Math.max(2, to - from - 2), height - 2);
}

// By pixel: how much is there at once, and how many decisions of each weight.
function count(width) {
  bins = { width, label: view.label, busy: new Int32Array(width + 2), of: [0, 1, 2, 3].map(() => new Uint32Array(width + 1)) };
  // To ask the page each time how wide it is takes longer than all the rest.
  const scale = (width - view.label) / WHOLE;
  const at = (time) => Math.max(0, Math.min(width, Math.floor(view.label + (time - FIRST) * scale)));
  for (const lane of story.lanes) for (let i = 0; i < lane.n; i++) { bins.busy[at(lane.from[i])]++; bins.busy[at(lane.to[i]) + 1]--; }
  for (const { lane, i, at: time } of story.marks) bins.of[lane.weight[i]][at(time)]++;
  for (let p = 0, sum = 0; p < width; p++) { sum += bins.busy[p]; bins.busy[p] = sum; }
  bins.most = bins.busy.slice(0, width).reduce((a, b) => Math.max(a, b), 1);
  bins.worst = bins.of.map((own) => own.reduce((a, b) => Math.max(a, b), 1));
}

let grip = null;
overview.addEventListener('pointerdown', (event) => {
  overview.setPointerCapture(event.pointerId);
  const at = placed(event.offsetX), near = placed(event.offsetX + 8) - at;
  if (view.to - view.from >= WHOLE) { grip = 'new'; view.anchor = at; }
  else if (Math.abs(at - view.from) < near) grip = 'from';
  else if (Math.abs(at - view.to) < near) grip = 'to';
  else {
    if (at < view.from || at > view.to) pan(at - (view.from + view.to) / 2);
    grip = at - view.from;
  }
});
overview.addEventListener('pointermove', (event) => {
  if (grip === null) return;
  const at = Math.max(FIRST, Math.min(LAST, placed(event.offsetX)));
  if (grip === 'from') show(Math.min(at, view.to - LEAST), view.to);
  else if (grip === 'to') show(view.from, Math.max(at, view.from + LEAST));
  else if (grip === 'new') { if (Math.abs(at - view.anchor) > WHOLE / 100) show(Math.min(at, view.anchor), Math.max(at, view.anchor)); }
  else show(at - grip, at - grip + view.to - view.from);
});
for (const end of ['pointerup', 'pointercancel']) overview.addEventListener(end, () => { grip = null; });

// --- what is where ----------------------------------------------------------------------------------------------------

function rowAt(y) {
  const at = y + scroller.scrollTop - AXIS;
  return y < AXIS ? null : view.rows.find((row) => at >= row.y && at < row.y + row.height) ?? null;
}

function under(px, py) {
  const row = rowAt(py);
  if (!row || row.kind !== 'lane' || px < view.label) return null;
  const { lane } = row;
  // A mark is small: it is found from a little way off, the one that matters most first.
  const near = 7 / (view.width - view.label) * (view.to - view.from), at = time(px);
  let best = null;
  for (let i = beyond(lane.at, at - near); i < lane.m && lane.at[i] <= at + near; i++) {
    const rank = lane.weight[i] * 1e9 - Math.abs(lane.at[i] - at) / near;
    if (!best || rank > best.rank) best = { lane, kind: 'mark', i, rank };
  }
  if (best) return best;
  const spot = 1.5 / (view.width - view.label) * (view.to - view.from);
  const i = beyond(lane.to, at - spot);
  return i < lane.n && lane.from[i] <= at + spot ? { lane, kind: 'span', i } : null;
}

function fill(box, lines) {
  box.replaceChildren(...lines.map(([kind, text, state]) => {
    const line = document.createElement('p');
    line.className = kind;
    if (state !== undefined) {
      const colour = document.createElement('i');
      colour.style.background = look.states[state];
      line.append(colour);
    }
    line.append(text);
    return line;
  }));
}

function densityAt(row, px) {
  const { counts, width } = density(row.group), p = Math.max(0, Math.min(width - 1, Math.round(px - view.label)));
  const parts = counts.map((own, state) => [own[p], state]).filter(([number]) => number > 0.005);
  const lines = parts.map(([number, state]) => ['state', `${Number.isInteger(number) ? number : number.toFixed(2)} ${story.states[state][0]}`, state]);
  return [['who', `${row.group.name} at ${since(time(px))}`], ...(lines.length ? lines : [['state', 'none']])];
}

function hideTip() { tip.hidden = true; }
function showTip(lines, px, py) {
  fill(tip, lines);
  tip.hidden = false;
  const box = byId('lanes').getBoundingClientRect(), own = tip.getBoundingClientRect();
  tip.style.left = `${Math.max(4, Math.min(px + 14, box.width - own.width - 6))}px`;
  const below = py + 18;
  tip.style.top = `${below + own.height < box.height ? below : Math.max(4, py - own.height - 12)}px`;
}

function choose(what) {
  const before = view.chosen;
  view.chosen = what;
  fill(detail, what ? told(what.lane, what.kind, what.i) : []);
  if (before?.lane !== what?.lane) arrange();
  redraw();
}

function reveal(lane) {
  const row = view.rows.find((each) => each.lane === lane);
  if (!row) return;
  const top = row.y, room = view.height - AXIS - row.height;
  if (top < scroller.scrollTop || top > scroller.scrollTop + room) scroller.scrollTop = Math.max(0, top - room / 2);
}

// --- pointers ---------------------------------------------------------------------------------------------------------

const pointers = new Map();
let drag = null;
canvas.addEventListener('pointerdown', (event) => {
  if (event.button > 0) return;
  canvas.setPointerCapture(event.pointerId);
  pointers.set(event.pointerId, event.offsetX);
  drag = { x: event.offsetX, y: event.offsetY, from: view.from, to: view.to, moved: false, stretch: event.shiftKey };
  if (pointers.size === 2) {
    const [a, b] = [...pointers.values()];
    drag = { pinch: Math.max(20, Math.abs(a - b)), around: time((a + b) / 2), from: view.from, to: view.to, moved: true };
  }
});
canvas.addEventListener('pointermove', (event) => {
  if (pointers.has(event.pointerId)) pointers.set(event.pointerId, event.offsetX);
  if (drag?.pinch && pointers.size === 2) {
    const [a, b] = [...pointers.values()], factor = drag.pinch / Math.max(20, Math.abs(a - b));
    show(drag.around - (drag.around - drag.from) * factor, drag.around + (drag.to - drag.around) * factor);
    return;
  }
  if (drag && !drag.pinch) {
    if (Math.abs(event.offsetX - drag.x) > 4) drag.moved = true;
    if (drag.moved && drag.stretch) { view.stretch = [drag.x, event.offsetX]; redraw(); }
    else if (drag.moved) {
      const by = (drag.x - event.offsetX) / (view.width - view.label) * (drag.to - drag.from);
      show(drag.from + by, drag.to + by);
      canvas.style.cursor = 'grabbing';
    }
    if (drag.moved) return;
  }
  if (event.pointerType === 'touch') return;
  const row = rowAt(event.offsetY), what = under(event.offsetX, event.offsetY);
  canvas.style.cursor = what || row?.kind === 'heading' || row?.kind === 'strip' ? 'pointer' : 'default';
  const changed = view.hovered?.lane !== what?.lane || view.hovered?.i !== what?.i || view.hovered?.kind !== what?.kind;
  view.hovered = what;
  if (what) showTip(told(what.lane, what.kind, what.i), event.offsetX, event.offsetY);
  else if (row?.kind === 'strip' && event.offsetX >= view.label) showTip(densityAt(row, event.offsetX), event.offsetX, event.offsetY);
  else if (row?.kind === 'lane' && event.offsetX < view.label) showTip([['who', row.lane.name]], event.offsetX, event.offsetY);
  else hideTip();
  if (changed) redraw();
});
function lift(event) {
  pointers.delete(event.pointerId);
  canvas.style.cursor = 'default';
  const was = drag;
  drag = null;
  if (view.stretch) {
    const [a, b] = [Math.min(...view.stretch), Math.max(...view.stretch)].map((px) => time(Math.max(px, view.label)));
    view.stretch = null;
    show(a, b);
    return;
  }
  if (event.type !== 'pointerup' || !was || was.moved) return;
  const row = rowAt(event.offsetY);
  if (row?.kind === 'heading' || (row?.kind === 'strip' && event.offsetX < view.label)) return fold(row.group.index);
  if (row?.kind === 'strip') { fill(detail, densityAt(row, event.offsetX)); return; }
  choose(under(event.offsetX, event.offsetY));
}
canvas.addEventListener('pointerup', lift);
canvas.addEventListener('pointercancel', lift);
canvas.addEventListener('pointerleave', () => { view.hovered = null; hideTip(); redraw(); });
canvas.addEventListener('dblclick', (event) => { if (event.offsetX >= view.label) zoom(0.4, time(event.offsetX)); });
function wheel(event) {
  const onAxis = event.currentTarget === overview || event.offsetY < AXIS;
  if (event.ctrlKey || event.metaKey || (onAxis && !event.shiftKey)) {
    event.preventDefault();
    const around = event.currentTarget === overview ? placed(event.offsetX) : time(Math.max(event.offsetX, view.label));
    zoom(Math.exp(Math.max(-1, Math.min(1, event.deltaY / (event.ctrlKey && Math.abs(event.deltaY) < 40 ? 60 : 250)))), around);
  } else if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
    event.preventDefault();
    pan((event.deltaX || event.deltaY) / (view.width - view.label) * (view.to - view.from));
  }
}
canvas.addEventListener('wheel', wheel, { passive: false });
overview.addEventListener('wheel', wheel, { passive: false });
scroller.addEventListener('scroll', () => { hideTip(); redraw(); }, { passive: true });

function fold(index) {
  if (view.folded.has(index)) view.folded.delete(index); else view.folded.add(index);
  arrange();
  redraw();
}

// --- keys -------------------------------------------------------------------------------------------------------------

// What is on a lane, in order of time.
function sequence(lane) {
  const items = [];
  for (let i = 0; i < lane.n; i++) items.push({ lane, kind: 'span', i, at: lane.from[i] });
  for (let i = 0; i < lane.m; i++) items.push({ lane, kind: 'mark', i, at: lane.at[i] });
  return items.sort((a, b) => a.at - b.at);
}
const timeOf = (what) => (what.kind === 'mark' ? what.lane.at[what.i] : what.lane.from[what.i]);

function go(what) {
  if (!what) return;
  const at = timeOf(what), length = view.to - view.from;
  if (at < view.from || at > view.to) show(at - length / 2, at + length / 2);
  choose(what);
  reveal(what.lane);
}

function along(by) {
  const { chosen } = view;
  if (!chosen) return across(1);
  const items = sequence(chosen.lane), at = items.findIndex((item) => item.kind === chosen.kind && item.i === chosen.i);
  go(items[at + by]);
}

function across(by) {
  const lanes = view.rows.filter((row) => row.kind === 'lane');
  const own = lanes.findIndex((row) => row.lane === view.chosen?.lane);
  const next = lanes[own < 0 ? 0 : own + by];
  if (!next) return;
  const near = view.chosen ? timeOf(view.chosen) : view.from;
  const items = sequence(next.lane);
  go(items.reduce((best, item) => (!best || Math.abs(item.at - near) < Math.abs(best.at - near) ? item : best), null));
}

document.addEventListener('keydown', (event) => {
  const typing = event.target.matches?.('input, select');
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (typing) {
    if (event.target.id !== 'search') return;
    if (event.key === 'Escape') { event.target.value = ''; search(''); canvas.focus(); }
    if (event.key === 'Enter') { search(event.target.value); showFound(); }
    return;
  }
  const acts = { '/': () => byId('search').focus(), '+': () => zoom(0.5), '=': () => zoom(0.5), '-': () => zoom(2), 0: () => show(FIRST, LAST), Escape: () => { choose(null); hideTip(); } };
  if (event.target === canvas) {
    Object.assign(acts, {
      ArrowRight: () => along(1), ArrowLeft: () => along(-1), ArrowDown: () => across(1), ArrowUp: () => across(-1),
      Enter: () => { if (view.chosen) { const at = timeOf(view.chosen), half = (view.to - view.from) / 8; show(at - half, at + half); } },
      PageDown: () => { scroller.scrollTop += view.height * 0.8; }, PageUp: () => { scroller.scrollTop -= view.height * 0.8; },
    });
  }
  const act = acts[event.key];
  if (act) { event.preventDefault(); act(); }
});

// --- around it --------------------------------------------------------------------------------------------------------

list.onChoose(({ lane, i, at }) => {
  const now = view.to - view.from, length = now > story.length / 2 ? Math.max(Math.min(now, 2e7), story.length / 40) : now;
  if (at < view.from + length * 0.1 || at > view.to - length * 0.1 || length < now) show(at - length / 2, at + length / 2);
  if (view.folded.has(lane.group) || view.chosen?.lane !== lane) view.chosen = null;
  choose({ lane, kind: 'mark', i });
  reveal(lane);
});

function fitCanvas(of) {
  const scale = window.devicePixelRatio || 1, width = Math.max(1, Math.round(of.clientWidth)), height = Math.max(1, Math.round(of.clientHeight));
  if (of.width !== Math.round(width * scale) || of.height !== Math.round(height * scale)) {
    of.width = Math.round(width * scale);
    of.height = Math.round(height * scale);
    of.getContext('2d').setTransform(scale, 0, 0, scale, 0, 0);
  }
  return { width, height };
}

function resize() {
  const box = byId('scroll');
  // Of a page that is being printed, or is not shown, there is nothing to measure.
  if (box.clientWidth === 0) return;
  canvas.style.width = `${box.clientWidth}px`;
  canvas.style.height = `${box.clientHeight}px`;
  const { width, height } = fitCanvas(canvas);
  view.width = width;
  view.height = height;
  pen.font = FONT(12.5, 600);
  const longest = story.lanes.slice(0, 400).reduce((most, lane) => Math.max(most, pen.measureText(lane.name).width), 90);
  view.label = Math.round(Math.min(longest + 24, 220, width * 0.3));
  arrange();
  draw();
  drawOverview();
}

function chips() {
  byId('groups').append(...story.groups.map((group) => {
    const chip = document.createElement('button'), number = document.createElement('b');
    chip.type = 'button';
    number.textContent = ` ${group.lanes.length}`;
    chip.append(group.name, number);
    chip.title = `Show or hide: ${group.name}`;
    chip.setAttribute('aria-pressed', 'true');
    chip.addEventListener('click', () => {
      if (view.hidden.has(group.index)) view.hidden.delete(group.index); else view.hidden.add(group.index);
      chip.setAttribute('aria-pressed', String(!view.hidden.has(group.index)));
      search(view.query);
    });
    return chip;
  }));
}

function legend() {
  const used = new Set();
  for (const lane of story.lanes) for (const state of lane.state) used.add(state);
  const entry = (word, title, paint) => {
    const box = document.createElement('span'), sample = document.createElement('canvas');
    sample.width = 36;
    sample.height = 24;
    const ink = sample.getContext('2d');
    ink.scale(2, 2);
    paint(ink);
    box.title = title;
    box.append(sample, word);
    return box;
  };
  const states = story.states.map(([word, means], state) => used.has(state) && entry(word, means, (ink) => { ink.fillStyle = look.fills[state]; ink.fillRect(0, 0, 18, 12); }));
  const weights = WEIGHTS.map((word, weight) => story.marks.some(({ lane, i }) => lane.weight[i] === weight) && entry(word, word, (ink) => {
    ink.fillStyle = look.weights[weight];
    ink.beginPath();
    if (weight === 0) ink.rect(8, 1, 2, 10); else if (weight === 1) { ink.moveTo(4, 10); ink.lineTo(14, 10); ink.lineTo(9, 1); }
    else if (weight === 2) { ink.moveTo(9, 0); ink.lineTo(15, 6); ink.lineTo(9, 12); ink.lineTo(3, 6); } else ink.arc(9, 6, 5, 0, 7);
    ink.fill();
  }));
  byId('legend').replaceChildren(...[...states, ...weights].filter(Boolean));
}

const many = (number, one, more = `${one}s`) => `${number.toLocaleString('en')} ${number === 1 ? one : more}`;

function begin() {
  readColours();
  document.body.classList.add('drawn');
  byId('summary').open = false;
  byId('app').hidden = false;
  const lost = story.marks.filter(({ lane, i }) => lane.weight[i] === 2).length, not = story.marks.filter(({ lane, i }) => lane.weight[i] === 1).length;
  byId('facts').textContent = [lasting(story.length), many(story.calls, 'call'), many(story.lanes.length, 'lane'), many(lost, 'loss', 'losses'), `${many(not, 'refusal')} or changes`].join(' · ');
  if (story.broken) {
    const [at, id, what, call] = story.broken, box = byId('broken');
    box.hidden = false;
    box.textContent = `${id} is broken at ${stamp(at)}${call > 0 ? `, call ${call}` : ''}: ${what}`;
    box.addEventListener('click', () => show(at - 5e6, at + 1e6));
  }
  chips();
  legend();
  byId('search').addEventListener('input', (() => {
    let soon = 0;
    return (event) => { clearTimeout(soon); soon = setTimeout(() => search(event.target.value), 100); };
  })());
  byId('in').addEventListener('click', () => zoom(0.5));
  byId('out').addEventListener('click', () => zoom(2));
  byId('all').addEventListener('click', () => show(FIRST, LAST));
  search('');
  resize();
  new ResizeObserver(resize).observe(byId('lanes'));
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => { readColours(); legend(); redraw(); drawOverview(); });
}

begin();
// When it was first drawn, in ms since it was asked for, and where things are: for whoever tries the page.
window.holdfast = {
  drawn: performance.now(), story, view,
  where(name, word) {
    const row = view.rows.find((each) => each.lane?.name === name), box = canvas.getBoundingClientRect();
    const i = [...row.lane.word].findIndex((each) => story.texts[each] === word);
    return { x: box.left + x(row.lane.at[i]), y: box.top + row.y + AXIS - scroller.scrollTop + 17 };
  },
};
