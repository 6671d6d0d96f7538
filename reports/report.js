// The page is complete without this script. It adds a line with the call under the
// pointer, n and p for the next and the previous violation, true time beside warped
// time, and a filter of the matrix; it opens what is linked and what is printed.
(() => {
  const all = (q, from = document) => [...from.querySelectorAll(q)];
  const open = e => { for (let d = e.closest('details'); d; d = d.parentElement.closest('details')) d.open = true; };
  const show = e => {
    const box = e.closest('.timeline-box');
    if (!box) return;
    let line = box.querySelector('.under');
    if (!line) {
      line = box.appendChild(document.createElement('p'));
      line.className = 'under small';
      line.setAttribute('aria-live', 'polite');
    }
    const lane = e.dataset.lane;
    line.textContent = (lane ? lane + ': ' : '') + e.querySelector('title').textContent;
    all('.now').forEach(x => x.classList.remove('now'));
    e.classList.add('now');
  };
  const go = e => { open(e); e.scrollIntoView({ block: 'center' }); show(e); };
  for (const svg of all('svg.timeline')) {
    svg.addEventListener('pointerover', ev => { const r = ev.target.closest('rect:has(title)'); if (r) show(r); });
    svg.tabIndex = 0;
    svg.addEventListener('keydown', ev => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[ev.key];
      if (!step) return;
      const ops = all('rect[id^=op]', svg).sort((a, b) => a.x.baseVal.value - b.x.baseVal.value);
      const next = ops[ops.findIndex(r => r.classList.contains('now')) + step];
      if (next) show(next);
      ev.preventDefault();
    });
  }
  const violations = all('rect[id^=v-]');
  let at = -1;
  document.addEventListener('keydown', ev => {
    if (ev.target.tagName === 'INPUT' || ev.ctrlKey || ev.metaKey || ev.altKey) return;
    const step = { n: 1, p: -1 }[ev.key];
    if (!step || !violations.length) return;
    at = at === -1 ? (step === 1 ? 0 : violations.length - 1) : (at + step + violations.length) % violations.length;
    history.replaceState(null, '', '#' + violations[at].id);
    go(violations[at]);
  });
  const linked = () => {
    const e = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (!e) return;
    if (e.tagName === 'DETAILS') e.open = true;
    if (e.tagName === 'rect') { at = violations.indexOf(e); go(e); } else { open(e); e.scrollIntoView(); }
  };
  addEventListener('hashchange', linked);
  linked();
  addEventListener('beforeprint', () => all('details').forEach(d => { d.open = true; }));
  const first = document.querySelector('#worst svg.timeline');
  if (first) {
    const left = +first.dataset.left, width = +first.dataset.width;
    const spans = all('[data-t]', first), warped = spans.map(r => [r.getAttribute('x'), r.getAttribute('width')]);
    const [from, to] = first.dataset.span.split(' ').map(Number);
    const place = s => left + Math.min(Math.max((s - from) / (to - from), 0), 1) * width;
    const button = document.createElement('button');
    let real = false;
    const draw = () => {
      let last = -99;
      spans.forEach((r, i) => {
        const [a, b] = r.dataset.t.split(' ').map(Number);
        r.setAttribute('x', real ? place(a) : warped[i][0]);
        if (b !== undefined) r.setAttribute('width', real ? Math.max(place(b) - place(a), 2) : warped[i][1]);
        if (r.matches('text:not(.name)')) {
          const hide = real ? 60 > place(a) - last : false;
          r.style.display = hide ? 'none' : '';
          if (!hide) last = place(a);
        }
      });
      button.textContent = real ? 'warped time' : 'true time';
    };
    button.onclick = () => { real = !real; draw(); };
    draw();
    first.parentElement.after(button); // not in what scrolls
  }
  for (const table of all('table.filter')) {
    const input = document.createElement('input');
    input.type = 'search';
    input.placeholder = 'filter: redis, unsafe, …';
    input.setAttribute('aria-label', 'show only the rows with these words');
    input.oninput = () => {
      const words = input.value.toLowerCase().split(/\s+/);
      for (const row of table.tBodies[0].rows) row.hidden = !words.every(w => row.textContent.toLowerCase().includes(w));
    };
    table.parentElement.before(input);
  }
})();
