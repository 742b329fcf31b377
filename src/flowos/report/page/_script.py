"""The script of curves: logarithmic or linear axes, and zoom. Without it they are read the same."""

SCRIPT = r"""
"use strict";
// Each moving part of a curve has its values in data-at: "x,y" a point. One without a value stays
// where it is on that axis.
document.querySelectorAll("svg.curve").forEach((plot, number) => {
  const SVG = "http://www.w3.org/2000/svg";
  const read = name => {
    const [low, high, start, end, log] = plot.dataset[name].split(" ").map(Number);
    return {low, high, start, end, log: log === 1};
  };
  const first = {x: read("x"), y: read("y")};
  const factor = Number(plot.dataset.factor), binary = plot.dataset.binary === "1";
  let axes = {x: {...first.x}, y: {...first.y}};
  const scaled = (axis, value) => axis.log ? Math.log(value) : value;
  const part = (axis, value) => (scaled(axis, value) - scaled(axis, axis.low))
    / (scaled(axis, axis.high) - scaled(axis, axis.low));
  const at = (axis, value) => axis.start + part(axis, value) * (axis.end - axis.start);
  const valueAt = (axis, pixel) => {
    const share = (pixel - axis.start) / (axis.end - axis.start);
    const [low, high] = [scaled(axis, axis.low), scaled(axis, axis.high)];
    return axis.log ? Math.exp(low + share * (high - low)) : low + share * (high - low);
  };
  const holds = (axis, value) => value === null || (value >= axis.low && value <= axis.high);
  const make = (name, attributes, text = "") => {
    const made = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    made.textContent = text;
    return made;
  };

  const parts = [...plot.querySelectorAll("[data-at]")].map(element => {
    const points = element.dataset.at.split(" ").map(
      point => point.split(",").map(value => value === "" ? null : Number(value)));
    const home = element.localName === "text"
      ? ["x", "y"].map(name => Number(element.getAttribute(name)))
      : (element.getAttribute("d") || "").match(/-?[\d.]+/g)?.map(Number);
    return {element, points, home};
  });
  const all = name => parts.flatMap(
    each => each.points.map(point => point[name === "x" ? 0 : 1])).filter(v => v !== null);
  const least = {x: Math.min(...all("x")), y: Math.min(...all("y"))};

  const box = {left: first.x.start - 8, top: first.y.end, right: first.x.end,
    bottom: first.y.start};
  const clip = make("clipPath", {id: `clip-${number}`});
  clip.append(make("rect", {x: box.left, y: box.top - 4, width: box.right - box.left,
    height: box.bottom - box.top + 8}));
  plot.append(clip);
  const move = ({element, points, home}) => {
    const [x, y] = points[0];
    if (element.localName === "text") {
      if (x !== null) element.setAttribute("x", home[0] + at(axes.x, x) - at(first.x, x));
      if (y !== null) element.setAttribute("y", home[1] + at(axes.y, y) - at(first.y, y));
    } else if (element.localName === "circle") {
      element.setAttribute("cx", at(axes.x, x));
      element.setAttribute("cy", at(axes.y, y));
    } else if (element.hasAttribute("transform")) {
      element.setAttribute("transform", `translate(${at(axes.x, x)} ${at(axes.y, y)})`);
    } else {
      const pixels = points.map(([px, py], i) => [
        px === null ? home[2 * i] : at(axes.x, px), py === null ? home[2 * i + 1] : at(axes.y, py),
      ]).filter(pixel => pixel.every(Number.isFinite));
      element.setAttribute("d", pixels.length ? "M" + pixels.map(p => p.join(" ")).join("L") : "");
      element.setAttribute("clip-path", `url(#clip-${number})`);
      return;
    }
    element.style.display = holds(axes.x, x) && holds(axes.y, y) ? "" : "none";
  };

  const range = (from, to) => Array.from({length: Math.max(0, to - from + 1)}, (_, i) => from + i);
  const even = (low, high, base = 10) => {
    const rough = (high - low) / 6, power = 10 ** Math.floor(Math.log10(rough));
    const round = [1, 2, 2.5, 5, 10].map(s => s * power).find(s => s >= rough * 0.999);
    const step = base === 2 ? 2 ** Math.ceil(Math.log2(rough)) : round;
    return range(Math.ceil(low / step - 1e-9), Math.floor(high / step + 1e-9)).map(i => i * step);
  };
  const powers = (low, high, base, most) => {
    const log = value => Math.log(value) / Math.log(base);
    const [from, to] = [Math.ceil(log(low) - 1e-9), Math.floor(log(high) + 1e-9)];
    if (base === 10 && to - from < 2) {
      const fine = range(from - 1, to).flatMap(e => [1, 2, 5].map(m => m * 10 ** e));
      const inside = fine.filter(v => v >= low * 0.999 && v <= high * 1.001);
      return inside.length > 1 ? inside : even(low, high);
    }
    const step = Math.max(1, Math.ceil((to - from + 1) / most));
    const found = range(from, to).filter((_, i) => i % step === 0).map(e => base ** e);
    return found.length > 1 ? found : even(low, high, base);
  };
  const plain = value => {
    const [whole, rest] = String(Number(value.toPrecision(6))).split(".");
    const spaced = whole.replace(/\B(?=(\d{3})+$)/g, "\u202f");
    return rest ? `${spaced}.${rest}` : spaced;
  };
  const SIZES = [[2 ** 40, "TiB"], [2 ** 30, "GiB"], [2 ** 20, "MiB"], [2 ** 10, "KiB"], [1, "B"]];
  const size = value => {
    const [unit, name] = SIZES.find(([least]) => value >= least) || [1, "B"];
    return `${Number((value / unit).toPrecision(4))} ${name}`;
  };
  const scale = () => {
    const made = [];
    const {x, y} = axes;
    const rows = y.log ? powers(y.low, y.high, 10, 7)
      : even(y.low / factor, y.high / factor).map(row => row * factor);
    for (const row of rows) {
      const place = at(y, row);
      made.push(make("path", {class: "grid", d: `M${box.left} ${place}H${box.right}`}),
        make("text", {x: box.left - 8, y: place + 4.5, "text-anchor": "end"}, plain(row / factor)));
    }
    made.push(make("path", {class: "base", d: `M${box.left} ${box.bottom}H${box.right}`}));
    let free = 0;
    const base = binary ? 2 : 10;
    for (const tick of x.log ? powers(x.low, x.high, base, 6) : even(x.low, x.high, base)) {
      const place = at(x, tick), label = binary ? size(tick) : plain(tick);
      const half = label.length * 4.8;
      if (place - half < free || place + half > box.right + 24) continue;
      free = place + half + 6;
      made.push(make("path", {class: "base", d: `M${place} ${box.bottom}v5`}),
        make("text", {x: place, y: box.bottom + 21, "text-anchor": "middle"}, label));
    }
    plot.querySelector(".scale").replaceChildren(...made);
  };

  const tools = document.createElement("div");
  tools.className = "tools";
  const button = (text, act) => {
    const made = document.createElement("button");
    made.type = "button";
    made.textContent = text;
    made.onclick = act;
    tools.append(made);
    return made;
  };
  const turn = name => {
    const axis = axes[name];
    axis.log = !axis.log;
    if (axis.log && axis.low <= 0) axis.low = least[name] / 1.25;
    if (!axis.log && name === "y" && axis.low === first.y.low) axis.low = 0;
    draw();
  };
  const logs = {x: button("log x", () => turn("x")), y: button("log y", () => turn("y"))};
  const whole = () => { axes = {x: {...first.x}, y: {...first.y}}; draw(); };
  const reset = button("whole", whole);
  const show = () => {
    for (const name of ["x", "y"]) {
      logs[name].setAttribute("aria-pressed", axes[name].log);
      logs[name].disabled = least[name] <= 0;
    }
    reset.disabled = JSON.stringify(axes) === JSON.stringify(first);
  };
  const draw = () => { parts.forEach(move); scale(); show(); };
  const holder = document.createElement("div");
  plot.replaceWith(holder);
  holder.append(tools, plot);
  show();

  let from = null, shade = null;
  const pixel = event => {
    const frame = plot.getBoundingClientRect(), wide = plot.viewBox.baseVal.width / frame.width;
    const inside = (v, low, high) => Math.min(Math.max(v, low), high);
    return [inside((event.clientX - frame.left) * wide, box.left, box.right),
      inside((event.clientY - frame.top) * wide, box.top, box.bottom)];
  };
  const sides = to => {
    const flat = Math.abs(to[1] - from[1]) < 12;
    const [y0, y1] = flat ? [box.top, box.bottom] : [from[1], to[1]].sort((a, b) => a - b);
    const [x0, x1] = [from[0], to[0]].sort((a, b) => a - b);
    return {x0, x1, y0, y1, flat};
  };
  plot.addEventListener("pointerdown", event => {
    if (event.pointerType === "touch" || event.button !== 0) return;
    event.preventDefault();
    from = pixel(event);
    plot.setPointerCapture(event.pointerId);
    shade = make("rect", {class: "zoom"});
    plot.append(shade);
  });
  plot.addEventListener("pointermove", event => {
    if (!from) return;
    const {x0, x1, y0, y1} = sides(pixel(event));
    const place = {x: x0, y: y0, width: x1 - x0, height: y1 - y0};
    for (const [key, value] of Object.entries(place)) shade.setAttribute(key, value);
  });
  const done = event => {
    if (!from) return;
    const {x0, x1, y0, y1, flat} = sides(pixel(event));
    from = null;
    shade.remove();
    if (event.type !== "pointerup" || x1 - x0 < 12) return;
    const {x, y} = axes;
    [x.low, x.high] = [valueAt(x, x0), valueAt(x, x1)];
    if (!flat) [y.low, y.high] = [valueAt(y, y1), valueAt(y, y0)];
    draw();
  };
  plot.addEventListener("pointerup", done);
  plot.addEventListener("pointercancel", done);
  plot.addEventListener("dblclick", whole);
});
"""
