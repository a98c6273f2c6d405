// The list of decisions: as many rows as can be seen, however many there are.

const list = (() => {
  const ROW = 98;
  const box = document.getElementById('list'), rows = document.getElementById('rows'), count = document.getElementById('count');
  const select = document.getElementById('weight');
  let shown = [], active = -1, choose = () => {};

  const has = (weight) => story.marks.some(({ lane, i }) => lane.weight[i] === weight);
  const kinds = [['1', 'lost or refused', (w) => w === 1 || w === 2], ['2', 'lost', (w) => w === 2], ['0', 'all', () => true]];
  if (has(3)) kinds.push(['3', 'faults', (w) => w === 3]);
  for (const [value, text] of kinds) select.append(new Option(text, value));
  // First what can be read in a minute: where much was refused, what was lost.
  const number = (weight) => story.marks.reduce((sum, { lane, i }) => sum + (lane.weight[i] === weight ? 1 : 0), 0);
  if (!has(1) && !has(2)) select.value = '0';
  else if (has(2) && number(1) > 200) select.value = '2';

  function filter() {
    const test = kinds.find(([value]) => value === select.value)[2];
    const { query } = view;
    shown = view.call !== null ? story.marks.filter(({ lane, i }) => lane.call[i] === view.call) : story.marks.filter(({ lane, i }) => test(lane.weight[i]) && !view.hidden.has(lane.group)
      && (query === '' || lane.named || hit[lane.because[i]] === 1 || hit[lane.word[i]] === 1));
    count.textContent = shown.length.toLocaleString('en');
    active = -1;
    box.scrollTop = 0;
    render();
  }

  // Browsers have no boxes of millions of pixels: beyond that, rows are scaled onto what there is.
  const LIMIT = 8e6;
  const height = () => Math.min(shown.length * ROW, LIMIT);
  function firstRow() {
    const most = Math.max(1, height() - box.clientHeight);
    return shown.length * ROW <= LIMIT ? box.scrollTop / ROW : box.scrollTop / most * Math.max(0, shown.length - box.clientHeight / ROW);
  }

  function render() {
    rows.style.height = `${height()}px`;
    const first = firstRow(), begin = Math.max(0, Math.floor(first)), end = Math.min(shown.length, begin + Math.ceil(box.clientHeight / ROW) + 2);
    const made = [];
    for (let k = begin; k < end; k++) {
      const { lane, i, at } = shown[k], row = document.createElement('div');
      row.className = 'row';
      row.id = `row${k}`;
      row.setAttribute('role', 'option');
      row.setAttribute('aria-selected', String(k === active));
      row.setAttribute('aria-setsize', String(shown.length));
      row.setAttribute('aria-posinset', String(k + 1));
      row.style.top = `${box.scrollTop + (k - first) * ROW}px`;
      const place = document.createElement('div'), word = document.createElement('div'), where = document.createElement('span');
      const when = document.createElement('span'), why = document.createElement('div');
      place.className = 'place';
      word.className = `word w${lane.weight[i]}`;
      word.textContent = story.texts[lane.word[i]];
      where.textContent = lane.name;
      when.className = 'when';
      when.textContent = `${since(at)} #${lane.call[i]}`;
      when.title = stamp(at);
      why.className = 'why';
      why.textContent = story.texts[lane.because[i]];
      place.append(where, when);
      row.append(word, place, why);
      row.addEventListener('click', () => activate(k));
      made.push(row);
    }
    rows.replaceChildren(...made);
    box.setAttribute('aria-activedescendant', active >= begin && active < end ? `row${active}` : '');
  }

  function activate(k) {
    if (k < 0 || k >= shown.length) return;
    active = k;
    const first = firstRow(), fits = Math.max(1, Math.floor(box.clientHeight / ROW));
    if (k < first || k > first + fits - 1) {
      const row = Math.max(0, k - Math.floor(fits / 2)), most = Math.max(1, height() - box.clientHeight);
      box.scrollTop = shown.length * ROW <= LIMIT ? row * ROW : row / Math.max(1, shown.length - box.clientHeight / ROW) * most;
    }
    render();
    choose(shown[k]);
  }

  box.addEventListener('scroll', render, { passive: true });
  box.addEventListener('keydown', (event) => {
    const page = Math.max(1, Math.floor(box.clientHeight / ROW) - 1);
    const next = { ArrowDown: active + 1, ArrowUp: Math.max(0, active - 1), PageDown: Math.min(shown.length - 1, active + page), PageUp: Math.max(0, active - page), Home: 0, End: shown.length - 1 }[event.key];
    if (next === undefined) return;
    event.preventDefault();
    activate(next);
  });
  select.addEventListener('change', filter);
  new ResizeObserver(render).observe(box);
  return { filter, onChoose(act) { choose = act; } };
})();
