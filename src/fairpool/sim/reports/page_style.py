"""How the page of a report looks: light and dark, wide and narrow. No fonts or pictures but the reader's own."""

from __future__ import annotations

STYLE = """
:root {
  color-scheme: light dark;
  --ground: #fbfbfa; --panel: #ffffff; --ink: #1c2127; --quiet: #5d6773; --hair: #e3e5e8; --grid: #eceef0;
  --s0: #2463b4; --s1: #c05a12; --s0-fill: #2463b41f; --s1-fill: #c05a121f; --one: #6b7480;
  --bad: #a3302b; --good: #1f7a45; --hover: #1c21270d;
}
@media (prefers-color-scheme: dark) {
  :root {
    --ground: #14171b; --panel: #1b1f25; --ink: #e5e9ee; --quiet: #9aa5b1; --hair: #2c323a; --grid: #262c33;
    --s0: #6aa8f2; --s1: #f0994e; --s0-fill: #6aa8f22b; --s1-fill: #f0994e2b; --one: #8b95a1;
    --bad: #f28b82; --good: #77cf95; --hover: #ffffff12;
  }
}
* { box-sizing: border-box; }
body {
  margin: 0; background: var(--ground); color: var(--ink);
  font: 15px/1.55 system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "Liberation Sans", Arial, sans-serif;
  overflow-wrap: break-word;
}
main { max-width: 1120px; margin: 0 auto; padding: 40px 40px 64px; }
h1 { font-size: 28px; line-height: 1.2; font-weight: 650; letter-spacing: -.015em; margin: 0 0 6px; }
h2 { font-size: 19px; font-weight: 650; letter-spacing: -.01em; margin: 56px 0 4px; }
h3 { font-size: 15px; font-weight: 650; margin: 28px 0 8px; }
p { margin: 0 0 12px; max-width: 76ch; }
.quiet, .note, dt { color: var(--quiet); }
.note { font-size: 14px; }
code { font: 13px/1.5 ui-monospace, "SF Mono", Menlo, Consolas, "Liberation Mono", monospace; }
pre { margin: 0; padding: 12px 14px; background: var(--panel); border: 1px solid var(--hair); border-radius: 8px;
  white-space: pre-wrap; overflow-wrap: anywhere; }
.stopped { border-left: 3px solid var(--s1); padding: 8px 14px; background: var(--panel); }
.legend { display: flex; flex-wrap: wrap; gap: 4px 20px; font-size: 14px; color: var(--quiet); margin: 6px 0 10px; }
.key { display: inline-block; width: 14px; height: 4px; border-radius: 2px; margin-right: 7px; vertical-align: middle; }
.key.s0 { background: var(--s0); } .key.s1 { background: var(--s1); }
.key.dashed { height: 0; border-radius: 0; background: none; border-top: 2px dashed var(--quiet); }
.key.solid { height: 0; border-radius: 0; background: none; border-top: 2px solid var(--quiet); }
.of { font-size: 14px; margin: 14px 0 2px; color: var(--quiet); }

.cards { display: grid; grid-template-columns: repeat(3, 1fr); gap: 12px; margin: 26px 0 0; }
.card { background: var(--panel); border: 1px solid var(--hair); border-radius: 10px; padding: 13px 16px 12px; }
.card h3 { margin: 0 0 5px; font-size: 13px; font-weight: 500; color: var(--quiet); }
.values { display: flex; flex-wrap: wrap; gap: 0 20px; margin: 0; font-size: 21px; line-height: 1.3; font-weight: 620;
  font-variant-numeric: tabular-nums; }
.values span { white-space: nowrap; } .values .key { vertical-align: 4px; }
.card .small { margin: 2px 0 0; font-size: 13px; color: var(--quiet); }

.panel { background: var(--panel); border: 1px solid var(--hair); border-radius: 10px; padding: 14px 16px 8px;
  margin: 10px 0 12px; }
.small-charts { display: grid; grid-template-columns: repeat(auto-fill, minmax(290px, 1fr)); gap: 12px;
  margin: 10px 0 14px; }
figure { margin: 0; background: var(--panel); border: 1px solid var(--hair); border-radius: 10px;
  padding: 12px 14px 6px; }
figcaption { margin-bottom: 6px; overflow-wrap: anywhere; }
.told { display: block; font-size: 12.5px; color: var(--quiet); font-variant-numeric: tabular-nums; }
svg { display: block; max-width: 100%; height: auto; }
svg.fluid { width: 100%; }
.narrow { display: none; }
svg text { font-size: 12px; fill: var(--ink); } svg text.tick { fill: var(--quiet); font-size: 11.5px; }
svg path { fill: none; vector-effect: non-scaling-stroke; }
.grid { stroke: var(--grid); } .mark { stroke: var(--quiet); } .one { stroke: var(--one); stroke-width: 1.5; }
.line { stroke-width: 1.6; stroke-linejoin: round; }
.reserved { stroke-width: 1.2; stroke-dasharray: 5 4; opacity: .85; } .capacity { stroke-width: 1.4; opacity: .75; }
.span { stroke-width: 1.4; opacity: .55; }
path.s0 { stroke: var(--s0); } path.s1 { stroke: var(--s1); } path.same { stroke: var(--quiet); }
svg path.fill { stroke: none; } svg path.fill.s0 { fill: var(--s0-fill); } svg path.fill.s1 { fill: var(--s1-fill); }
.bar.s0 { fill: var(--s0); } .bar.s1 { fill: var(--s1); } .bar.lent { opacity: .5; }
.dot.s0 { fill: var(--s0); stroke: var(--s0); } .dot.s1 { fill: var(--s1); stroke: var(--s1); }
.dot.ring { fill: var(--panel); stroke-width: 1.8; } .dot.worst { opacity: .75; }
.hover { fill: transparent; } .hover:hover { fill: var(--hover); }
.bar:hover, .dot:hover { opacity: 1; filter: brightness(1.15); }

.scroll { overflow-x: auto; margin: 10px 0 12px; border: 1px solid var(--hair); border-radius: 10px;
  background: var(--panel); }
table { border-collapse: collapse; width: 100%; font-size: 14px; font-variant-numeric: tabular-nums; }
th, td { text-align: left; padding: 6px 14px; vertical-align: top; white-space: nowrap; }
th { font-weight: 500; font-size: 13px; color: var(--quiet); border-bottom: 1px solid var(--hair); padding-top: 9px; }
td.number, th.number { text-align: right; }
tbody + tbody tr:first-child td { border-top: 1px solid var(--grid); }
td.first { font-weight: 550; }
td.wrap { white-space: normal; min-width: 120px; overflow-wrap: anywhere; }

.sides { display: grid; grid-template-columns: 1fr 1fr; gap: 12px 24px; }
.sides > div { min-width: 0; }
ol.changes { list-style: none; margin: 0; padding: 0; }
ol.changes li { background: var(--panel); border: 1px solid var(--hair); border-radius: 10px; padding: 12px 16px;
  margin-bottom: 10px; font-size: 14px; overflow-wrap: anywhere; }
ol.changes .head { display: flex; flex-wrap: wrap; justify-content: space-between; gap: 2px 14px; margin: 0 0 2px; }
ol.changes .bad { color: var(--bad); font-weight: 620; } ol.changes .good { color: var(--good); font-weight: 620; }
ol.changes p { margin: 5px 0 0; } ol.changes .meta { font-size: 13px; color: var(--quiet); margin: 0; }
ol.changes p.why { padding-left: 12px; border-left: 2px solid var(--hair); }
ol.changes p.why.s0 { border-color: var(--s0); } ol.changes p.why.s1 { border-color: var(--s1); }
ul { margin: 0 0 12px; padding-left: 20px; } ul li { margin-bottom: 3px; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: 4px 20px; margin: 12px 0; font-size: 14px; }
dd { margin: 0; overflow-wrap: anywhere; }
footer { margin-top: 56px; padding-top: 24px; border-top: 1px solid var(--hair); }
footer h2 { margin-top: 0; }

@media (max-width: 820px) {
  main { padding: 22px 16px 48px; }
  h1 { font-size: 23px; } h2 { margin-top: 42px; }
  .wide { display: none; } .narrow { display: block; }
  .sides { grid-template-columns: 1fr; }
  .cards { grid-template-columns: 1fr 1fr; gap: 8px; } .card { padding: 10px 12px; } .values { font-size: 17px; }
  .panel { padding: 10px 6px 4px; }
  th, td { padding: 6px 10px; }
  dl { grid-template-columns: 1fr; gap: 0; } dd { margin-bottom: 8px; }
}
@media print { body { background: #fff; } .panel, figure, li, .scroll { break-inside: avoid; } }
"""
