"""The script of live pages: without it they are read the same, and reload by themselves."""

SCRIPT = """\
"use strict";
// Asks once a second whether this page is another one now, and replaces the parts that are.
// Nothing is asked while the page is hidden.
(() => {
  const WORDS = {
    gone: "No answer from flowos serve: this page is as it was before. ",
    other: "flowos serve was started again: open the address that it printed. ",
  };
  const status = document.getElementById("live");
  let version = "", ahead = 0;
  const partsOf = page => new Map(
    [...page.querySelectorAll("body > header, main > [id]")].map(
      part => [part.id || part.localName, part]));
  const textsOf = page => new Map([...partsOf(page)].map(([id, part]) => [id, part.outerHTML]));
  let shown = textsOf(document);

  const keysOf = part => [...part.querySelectorAll("a[href], summary, [tabindex]")];
  const put = (old, fresh) => {
    const open = [...old.querySelectorAll("details")].map(each => each.open);
    const boxes = [...old.querySelectorAll(".scroll")].map(b => [b.scrollLeft, b.scrollTop]);
    const focused = keysOf(old).indexOf(document.activeElement);
    old.replaceWith(fresh);
    fresh.querySelectorAll("details").forEach((each, i) => { each.open = open[i] || false; });
    fresh.querySelectorAll(".scroll").forEach((box, i) => {
      [box.scrollLeft, box.scrollTop] = boxes[i] || [0, 0];
    });
    if (focused >= 0) keysOf(fresh)[focused]?.focus({preventScroll: true});
  };
  const show = text => {
    const page = new DOMParser().parseFromString(text, "text/html");
    const texts = textsOf(page), now = partsOf(document), fresh = partsOf(page);
    const same = [...texts.keys()].join() === [...shown.keys()].join();
    for (const name of same ? [] : ["body > header", "main"])
      put(document.querySelector(name), page.querySelector(name));
    for (const [id, part] of same ? fresh : [])
      if (texts.get(id) !== shown.get(id)) put(now.get(id), part);
    document.title = page.title;
    shown = texts;
  };

  const UNITS = [[86400, "d"], [3600, "h"], [60, "min"], [1, "s"]];
  const tick = () => {
    for (const each of document.querySelectorAll("[data-since]")) {
      const seconds = Math.max(0, (Date.now() + ahead - Date.parse(each.dataset.since)) / 1000);
      const at = UNITS.findIndex(([size]) => seconds >= size);
      const [size, name] = UNITS[at < 0 ? 3 : at];
      const rest = at >= 0 && at < 3 ? Math.floor(seconds % size / UNITS[at + 1][0]) : 0;
      const more = rest ? ` ${rest} ${UNITS[at + 1][1]}` : "";
      each.textContent = `${each.dataset.before}${Math.floor(seconds / size)} ${name}${more}`;
    }
    for (const each of document.querySelectorAll("[data-rate]")) {
      const {from, rate, at, unit} = each.dataset;
      const cost = +from + rate * Math.max(0, Date.now() + ahead - Date.parse(at)) / 1000;
      each.textContent = `${cost.toFixed(cost < 1 ? 4 : 2)}\u00a0${unit}`;
    }
  };
  const say = words => { if (status && status.textContent !== words) status.textContent = words; };
  const ask = async () => {
    if (document.hidden) return;
    try {
      const headers = version ? {"If-None-Match": version} : {};
      const answer = await fetch(location.href, {cache: "no-store", redirect: "error", headers});
      const text = await answer.text();
      const date = Date.parse(answer.headers.get("Date"));
      if (Math.abs(date - Date.now() - ahead) > 2000) ahead = date - Date.now();
      const page = (answer.headers.get("Content-Type") || "").startsWith("text/html");
      if (page) {
        version = answer.headers.get("ETag") || "";
        show(text);
      }
      say(page || answer.status === 304 ? "" : answer.status === 403 ? WORDS.other : text);
    } catch {
      say(WORDS.gone);
    }
    tick();
  };
  const again = async () => { await ask(); setTimeout(again, 1000); };
  document.addEventListener("visibilitychange", ask);
  tick();
  again();
})();
"""
