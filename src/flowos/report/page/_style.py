"""Style of the page. Colours are data, so that a test can check their contrast (WCAG 2.2, AA)."""

from flowos.report._matrix import SHADES

LIGHT = {
    "paper": "#fbfaf6",
    "card": "#ffffff",
    "ink": "#1a1c20",
    "muted": "#5b616a",
    "rule": "#dedad0",
    "track": "#e9e5db",
    "good": "#00694a",
    "warn": "#a63d00",
    "grey": "#b3b0a8",
    "c0": "#0b5fa5",
    "c1": "#c24d00",
    "c2": "#00805c",
    "c3": "#a63a7d",
    "c4": "#856600",
    "c5": "#5a4bb8",
    "c6": "#00808f",
    "c7": "#4a4e55",
}
DARK = {
    "paper": "#131518",
    "card": "#1b1e23",
    "ink": "#eae8e2",
    "muted": "#a6abb3",
    "rule": "#343840",
    "track": "#2c3037",
    "good": "#5fd0a5",
    "warn": "#ff9d66",
    "grey": "#5d626b",
    "c0": "#6cb4f5",
    "c1": "#ff9a55",
    "c2": "#45cfa0",
    "c3": "#f190c6",
    "c4": "#dfbc45",
    "c5": "#aea2ff",
    "c6": "#4fd3e3",
    "c7": "#cfd3da",
}
DASHES = ("", "7 3", "2 3", "9 3 2 3", "12 4", "4 2", "1 4", "14 3 3 3")
"""Each line has its own marker and dashes, so that colour alone never distinguishes lines."""

SHADE_STEP = 5
"""Percent of the first colour that each shade of a matrix adds to the paper: text stays legible."""


def _variables(colours: dict[str, str]) -> str:
    return ";".join(f"--{name}:{value}" for name, value in colours.items())


_SERIES = "".join(
    f".s{i}{{--c:var(--c{i})}}.s{i} .line,.s{i} .sw{{stroke-dasharray:{dash or 'none'}}}"
    f"figure:has(.k{i}:hover) .series:not(.s{i}){{opacity:.12}}"
    for i, dash in enumerate(DASHES)
)

_SHADES = "".join(
    f".h{i}{{background:color-mix(in srgb,var(--c0) {i * SHADE_STEP}%,var(--card))}}"
    for i in range(1, SHADES)
)
_HEAT = (
    ".heat{width:auto;print-color-adjust:exact;-webkit-print-color-adjust:exact}"
    ".heat th,.heat td{padding:4px 7px;border-left:1px solid var(--rule)}"
    ".chart:has(.heat){grid-column:1/-1}.alone figure:has(.heat){max-width:none}"
    ".scroll:has(.heat){width:fit-content}"
    ".heat tbody th{position:sticky;left:0;background:var(--card)}"
)

CSS = (
    f":root{{color-scheme:light dark;{_variables(LIGHT)}}}"
    f"@media (prefers-color-scheme:dark){{:root{{{_variables(DARK)}}}}}"
    """
*{box-sizing:border-box}
:root{--sans:-apple-system,BlinkMacSystemFont,"Segoe UI",Roboto,"Noto Sans","Helvetica Neue",
"Liberation Sans",Arial,sans-serif}
html{-webkit-text-size-adjust:100%;text-size-adjust:100%;scroll-behavior:smooth}
@media (prefers-reduced-motion:reduce){html{scroll-behavior:auto}}
body{margin:0;background:var(--paper);color:var(--ink);
font:16px/1.5 var(--sans)}
main,header,footer{max-width:1200px;margin:0 auto;padding:0 clamp(16px,3vw,40px)}
h1,h2,h3{font-family:Charter,"Bitstream Charter","Sitka Text",Cambria,Georgia,"Liberation Serif",
serif;
line-height:1.15;text-wrap:balance;overflow-wrap:anywhere;margin:0}
h1{font-size:clamp(1.9rem,4.4vw,3.1rem);letter-spacing:-.015em;font-weight:700}
h2{font-size:clamp(1.4rem,2.4vw,1.85rem);font-weight:700}
h3{font-size:1.12rem;font-weight:700}
p{margin:.5em 0;max-width:70ch}
a{color:var(--c0)}
:focus-visible{outline:3px solid var(--c0);outline-offset:2px;border-radius:2px}
.skip{position:absolute;left:-999px}.skip:focus{left:8px;top:8px;background:var(--card);
padding:8px}
code{font:.9em ui-monospace,SFMono-Regular,Menlo,Consolas,"Liberation Mono",monospace;
background:var(--track);padding:.1em .35em;border-radius:4px;overflow-wrap:anywhere}
.kicker{font-size:.82rem;color:var(--muted);margin:0 0 10px}
.kicker b{color:var(--ink);letter-spacing:.02em}
header{padding-top:36px}
.deck{font-size:1.12rem;color:var(--muted);max-width:74ch}
.lede{font-size:1.12rem;margin-top:14px;max-width:74ch}
nav ul{display:flex;flex-wrap:wrap;gap:4px 18px;list-style:none;margin:20px 0 0;padding:10px 0;
border-top:1px solid var(--rule);border-bottom:1px solid var(--rule);font-size:.92rem}
nav a{display:inline-block;padding:3px 0;text-decoration:none}
nav a:hover{text-decoration:underline}
section{margin-top:52px}
section>h2{border-top:3px solid var(--ink);padding-top:14px;margin-bottom:20px}
section>:not(h2)+h3,.charts+div>h3{margin-top:22px}
.two h3{margin-bottom:6px}
.note{color:var(--muted);font-size:.95rem}
.cards{display:grid;grid-template-columns:repeat(auto-fill,minmax(250px,1fr));gap:16px;
margin:22px 0 0;
padding:0;list-style:none}
.card{background:var(--card);border:1px solid var(--rule);border-radius:8px;padding:16px 18px 14px;
display:flex;flex-direction:column;min-width:0}
.card h3{font:600 .92rem/1.35 var(--sans);
color:var(--muted)}
.card .big{font-size:2.35rem;line-height:1.1;font-weight:650;letter-spacing:-.02em;margin:6px 0 8px;
font-variant-numeric:tabular-nums;overflow-wrap:anywhere}
.card .big small{font-size:1.05rem;font-weight:500;letter-spacing:0;color:var(--muted)}
.meter{height:8px;border-radius:4px;background:var(--track);overflow:hidden;margin:0 0 7px}
.meter i{display:block;height:100%;background:var(--c0);border-radius:4px 0 0 4px}
.untrusted .meter i{background:var(--warn)}
.card p{margin:0;font-size:.88rem;line-height:1.45}
.card p+p{margin-top:2px}
.card .trust{margin-top:auto;padding-top:8px}
.good{color:var(--good)}.warn{color:var(--warn)}
.do{list-style:none;padding:0;margin:0}
.do li{display:grid;grid-template-columns:5.5rem minmax(0,1fr);align-items:baseline;padding:10px 0;
border-top:1px solid var(--rule)}.do li:first-child{border-top:0}
.do b{font-size:1.6rem;color:var(--good);font-variant-numeric:tabular-nums}
.do .note{margin:.2em 0 0}
.two{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,460px),1fr));gap:0 48px}
ul.plain{list-style:none;margin:14px 0 0;padding:0}
ul.plain li{padding:9px 0;border-top:1px solid var(--rule);overflow-wrap:anywhere;font-size:.95rem}
ul.plain li:first-child{border-top:0}
.plots,.charts{display:grid;gap:40px 44px;align-items:start;
grid-template-columns:repeat(auto-fit,minmax(min(100%,480px),1fr))}
.charts{grid-template-columns:repeat(2,minmax(0,1fr));margin-top:20px}
.chart.wide,.alone .chart{grid-column:1/-1}
@media (min-width:901px){
.alone figure:not(:has(.legend)){max-width:640px}
.alone figure:has(.legend){display:grid;grid-template-columns:minmax(0,1fr) minmax(0,2fr);
gap:0 44px}.alone details{grid-column:1/-1}.alone .legend{flex-direction:column}
.alone .plot text{font-size:10.5px}}
.chart h3+figure,.chart h3+.plots,.note+.plots{margin-top:10px}
figure{margin:0;min-width:0}
figcaption h4{font-size:.98rem;font-weight:650;margin:0 0 2px;overflow-wrap:anywhere}
.legend{list-style:none;display:flex;flex-wrap:wrap;gap:3px 18px;margin:8px 0 4px;padding:0;
font-size:.86rem}
.legend li{display:flex;align-items:center;gap:7px;min-width:0;overflow-wrap:anywhere}
.legend svg{flex:none}
.legend b{font-weight:600;font-variant-numeric:tabular-nums;white-space:nowrap}
.plot{display:block;width:100%;height:auto;overflow:visible}
.plot text{font:12.5px var(--sans);
fill:var(--muted);font-variant-numeric:tabular-nums}
.plot .strong{fill:var(--ink);font-weight:600}
.plot .halo{paint-order:stroke;stroke:var(--paper);stroke-width:4px;stroke-linejoin:round}
.tools{display:flex;gap:6px;margin:2px 0}
.tools button{font:inherit;font-size:.8rem;color:var(--muted);background:none;cursor:pointer;
border:1px solid var(--rule);border-radius:4px;padding:1px 8px}
.tools button[aria-pressed=true]{color:var(--ink);border-color:var(--muted)}
.tools button:disabled{opacity:.45;cursor:default}
.zoom{fill:var(--c0);fill-opacity:.12;stroke:var(--c0)}
.grid{stroke:var(--rule);stroke-width:1}
.base{stroke:var(--muted);stroke-width:1}
.line{fill:none;stroke:var(--c);stroke-width:2.2;stroke-linejoin:round;stroke-linecap:round}
.context{fill:none;stroke:var(--grey);stroke-width:1.1}
.cdot{fill:var(--grey)}
.spread{stroke:var(--c);stroke-width:1.2;opacity:.75}
.dot{fill:var(--c);stroke:var(--paper);stroke-width:1}
.dot.no{fill:var(--paper);stroke:var(--c);stroke-width:1.6}
.bar{fill:var(--c)}.bar.no{fill:var(--c);fill-opacity:.22;stroke:var(--c);stroke-width:1.4}
.over{stroke:var(--ink);stroke-width:1.3}
.ceiling{fill:none;stroke:var(--ink);stroke-width:1.3;stroke-dasharray:5 4}
.ceiling.nominal{stroke-dasharray:1.5 3.5}
.step{stroke:var(--muted);stroke-width:1;stroke-dasharray:2 3}
.sw{stroke:var(--c);stroke-width:2.4;fill:none}
.lanes{display:grid;grid-template-columns:fit-content(28vw) minmax(0,1fr);gap:0 10px;
font-size:.8rem;color:var(--muted);font-variant-numeric:tabular-nums;margin-top:14px}
.lanes ul{list-style:none;margin:0;padding:0;overflow:hidden}
.lanes li{overflow:hidden;text-overflow:ellipsis;white-space:nowrap}
.lanes svg{display:block;width:100%}
.lanes svg *{vector-effect:non-scaling-stroke}
.lanes .track{fill:var(--track);opacity:.5}
.ticks{grid-column:2;position:relative;height:2em}
.ticks span{position:absolute;top:3px;transform:translateX(-50%);white-space:nowrap}
.ticks span:first-child{transform:none}
.cards+figure{margin-top:26px}
.failed{stroke:var(--warn);stroke-width:3;pointer-events:none}
.again{stroke:var(--ink);stroke-width:2;stroke-dasharray:3 2;pointer-events:none}
.idle{fill:none;stroke:var(--warn);stroke-width:1.5;stroke-dasharray:5 3}
.site{max-width:1200px;margin:0 auto;padding:0 clamp(16px,3vw,40px)}
.site nav ul{margin:0;border-top:0;padding:12px 0 10px}
.site [aria-current]{color:var(--ink);font-weight:650;box-shadow:0 2px 0 var(--ink)}
.site+header{padding-top:22px}.site+header h1{font-size:clamp(1.6rem,3.4vw,2.4rem)}
#live:not(:empty){position:sticky;top:0;padding:8px 0;color:var(--warn);max-width:none}
.cards+article,article+article{margin-top:30px}
.list+.list,details+.list{margin-top:18px}
article h3,.list tbody th,.list td:not(.n,.whole){overflow-wrap:anywhere}
.list th,.list td{white-space:normal;padding-left:0;padding-right:20px}
.list tr>:last-child{padding-right:0}
.list .n{white-space:nowrap}
.list thead th{position:static;background:none}
.list tbody th{min-width:12ch}.list td:not(.n){min-width:7ch}
.state{white-space:nowrap}
.pager{display:flex;flex-wrap:wrap;gap:6px 20px;margin-top:16px;font-size:.92rem}
.pager span{color:var(--muted)}
details{margin-top:10px}
summary{cursor:pointer;font-size:.9rem;color:var(--c0);padding:4px 0;width:fit-content}
summary:hover{text-decoration:underline}
.scroll{overflow-x:auto;max-width:100%;max-height:560px;overflow-y:auto;
border:1px solid var(--rule);
border-radius:6px;background:var(--card);margin-top:8px}
table{border-collapse:collapse;width:100%;font-size:.86rem;font-variant-numeric:tabular-nums}
caption span{position:sticky;left:12px;display:inline-block;max-width:min(86ch,calc(100vw - 60px))}
caption{text-align:left;padding:9px 12px;color:var(--muted);font-size:.86rem}
th,td{padding:5px 12px;text-align:left;white-space:nowrap;border-top:1px solid var(--rule);
vertical-align:top}
thead th{position:sticky;top:0;background:var(--card);font-weight:600;color:var(--muted);z-index:1}
tbody th{font-weight:500}
.n{text-align:right}
td.wrap{white-space:normal;min-width:min(44ch,calc(100vw - 60px));overflow-wrap:anywhere}
.scroll:has(.comparison){max-height:none}
.comparison th,.comparison td{white-space:normal}.comparison .n{white-space:nowrap}
.comparison tbody th{min-width:15ch}.comparison td:nth-child(2){min-width:20ch}
.comparison td:nth-child(n+6){min-width:20ch}
.forest{width:150px;height:20px;display:block}.forest.strip{height:30px}
.band{fill:var(--track)}.one{stroke:var(--muted);stroke-width:1}
.ci{stroke:var(--c0);stroke-width:2.4}.cidot{fill:var(--c0)}
dl.facts{display:grid;grid-template-columns:minmax(0,11rem) minmax(0,1fr);gap:0;margin:18px 0 0;
font-size:.95rem}
dl.facts dt,dl.facts dd{padding:7px 0;border-top:1px solid var(--rule);margin:0;
overflow-wrap:anywhere}
dl.facts dt{color:var(--muted);padding-right:16px}
footer{margin-top:60px;padding-top:16px;padding-bottom:48px;color:var(--muted);font-size:.88rem}
footer p{max-width:80ch}
@media (max-width:900px){.charts{grid-template-columns:minmax(0,1fr)}}
@media (max-width:640px){
section{margin-top:40px}
.plot text{font-size:18px}
.cards{grid-template-columns:1fr}
.cards.small{grid-template-columns:repeat(2,minmax(0,1fr))}
.cards.small .card{padding:12px 12px 10px}.cards.small .big{font-size:1.4rem}
.list .more{display:none}
dl.facts{grid-template-columns:1fr}dl.facts dd{border-top:0;padding-top:0}
dl.facts dt{padding-bottom:0}
}
@media print{.scroll{max-height:none;overflow:visible}section{break-inside:avoid}
nav,.tools{display:none}}
""" + _SERIES + _SHADES + _HEAT
)
