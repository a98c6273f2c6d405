'use strict';

// What happened, out of the columns in which it is written.
const story = (() => {
  const raw = JSON.parse(document.getElementById('data').textContent);
  const { texts, length } = raw;
  const lanes = raw.lanes.map(([group, name, spans, marks], index) => {
    const n = spans.length / 5, m = marks.length / 5;
    const lane = {
      index, group, name, n, m,
      from: new Float64Array(n), to: new Float64Array(n), state: new Uint8Array(n), who: new Uint32Array(n), why: new Uint32Array(n),
      at: new Float64Array(m), weight: new Uint8Array(m), word: new Uint32Array(m), because: new Uint32Array(m), call: new Float64Array(m),
    };
    for (let i = 0, k = 0, time = 0; i < n; i++, k += 5) {
      time += spans[k];
      lane.from[i] = time;
      lane.to[i] = time + spans[k + 1];
      lane.state[i] = spans[k + 2];
      lane.who[i] = spans[k + 3];
      lane.why[i] = spans[k + 4];
    }
    for (let i = 0, k = 0, time = 0; i < m; i++, k += 5) {
      time += marks[k];
      lane.at[i] = time;
      lane.weight[i] = marks[k + 1];
      lane.word[i] = marks[k + 2];
      lane.because[i] = marks[k + 3];
      lane.call[i] = marks[k + 4];
    }
    return lane;
  });
  raw.lanes = null;

  // All marks in order of time, each by its lane and its place there.
  const all = [];
  for (const lane of lanes) for (let i = 0; i < lane.m; i++) all.push({ lane, i, at: lane.at[i] });
  all.sort((a, b) => a.at - b.at);

  const groups = raw.groups.map((name, index) => ({ name, index, lanes: lanes.filter((lane) => lane.group === index) }));
  return {
    title: raw.title, begin: raw.begin, edge: raw.edge, day: raw.day, length: Math.max(length, 1), calls: raw.calls, broken: raw.broken,
    states: raw.states, texts, lanes, marks: all, groups: groups.filter((group) => group.lanes.length > 0),
  };
})();

const WEIGHTS = ['decided', 'refused or changed', 'lost', 'fault'];

// The first place whose value is beyond `time`.
function beyond(times, time) {
  let low = 0, high = times.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (times[middle] > time) high = middle; else low = middle + 1;
  }
  return low;
}

// Microseconds of the run's clock, with as many digits as `step` needs.
function clock(micros, step = 1000) {
  const whole = Math.floor((micros + 0.5) / 1e6);
  const two = (number) => String(number).padStart(2, '0');
  const hours = Math.floor(whole / 3600), minutes = Math.floor(whole / 60) % 60;
  const head = hours > 0 ? `${hours}:${two(minutes)}:${two(whole % 60)}` : `${minutes}:${two(whole % 60)}`;
  if (step >= 1e6) return head;
  const digits = step >= 1e5 ? 1 : step >= 1e4 ? 2 : step >= 1e3 ? 3 : 6;
  return `${head}.${String(Math.floor(micros + 0.5) % 1e6).padStart(6, '0').slice(0, digits)}`;
}

function lasting(micros) {
  if (micros < 1000) return `${Math.round(micros)} µs`;
  if (micros < 1e6) return `${(micros / 1000).toFixed(micros < 1e4 ? 1 : 0)} ms`;
  if (micros < 12e7) return `${(micros / 1e6).toFixed(2)} s`;
  const whole = Math.round(micros / 1e6);
  return whole < 7200 ? `${Math.floor(whole / 60)} min ${whole % 60} s` : `${Math.floor(whole / 3600)} h ${Math.floor(whole / 60) % 60} min`;
}

const absolute = (micros, step) => clock(Math.max(0, story.begin + micros), step);

// Since when time is counted, as a trace or `holdfast replay` says it.
function since(micros) {
  const whole = Math.max(0, Math.floor(story.begin + micros + 0.5));
  return `${story.edge ? '+' : ''}${Math.floor(whole / 1e6)}.${String(whole % 1e6).padStart(6, '0')}s`;
}

// The same behind the time of the day, where that is known.
function stamp(micros) {
  if (story.day === null) return since(micros);
  const day = new Date(Math.floor((story.day + Math.floor(micros + 0.5)) / 1000));
  return `${day.toISOString().slice(11, 23)} ${since(micros)}`;
}

// What there is to say of something on a lane: lines of [class, text].
function told(lane, kind, i) {
  const { texts } = story;
  if (kind === 'mark') {
    const weight = lane.weight[i];
    return [['who', lane.name], [`state w${weight}`, texts[lane.word[i]]], ['when', `at ${stamp(lane.at[i])}, call #${lane.call[i]}`], ['why', texts[lane.because[i]]]];
  }
  const [word, means] = story.states[lane.state[i]];
  const lines = [
    ['who', `${lane.name} — ${texts[lane.who[i]]}`],
    ['state', `${word}: ${means}`, lane.state[i]],
    ['when', `${stamp(lane.from[i])} – ${stamp(lane.to[i])}, for ${lasting(lane.to[i] - lane.from[i])}`],
  ];
  // Whoever goes on in another way ends for the reason with which that ends.
  let j = i, why = lane.why[i];
  while (why === 0 && j + 1 < lane.n && lane.who[j + 1] === lane.who[i] && lane.from[j + 1] === lane.to[j]) why = lane.why[++j];
  if (why !== 0) lines.push(['why', j === i ? `It came to its end: ${texts[why]}` : `Later, at ${stamp(lane.to[j])}: ${texts[why]}`]);
  return lines;
}
