"""How pages look: the colours of the reports, wide and narrow, light and dark, and on paper."""

from __future__ import annotations

from fedaccord.report.style import FONTS, declare_colours

CSS = (
    ":root{" + declare_colours(0) + "}\n"
    "body.body--dark{" + declare_colours(1) + "}\n"
    "body{background:var(--paper);color:var(--ink);font-family:" + FONTS + "}"
    """
body.body--dark,.body--dark .q-layout{background:var(--paper)!important;color:var(--ink)}
.nicegui-content{padding:0!important;display:block!important}
.app{max-width:1500px;margin:0 auto;padding:12px 20px 60px;font-size:1rem;line-height:1.45}
.app.large{font-size:1.45rem}
.app.large .q-btn,.app.large .q-field__native,.app.large .q-tab__label{font-size:1.2rem!important}
h1{font-size:1.35em;font-weight:650;margin:0;line-height:1.2;overflow-wrap:anywhere}
h2{font-size:1.15em;font-weight:650;margin:1.2em 0 .4em}
h3{font-size:1em;font-weight:650;margin:1em 0 .3em}
.bar{display:flex;flex-wrap:wrap;gap:4px;align-items:center}
.bar .title{flex:1 1 240px;min-width:0}
.desk{display:grid;grid-template-columns:minmax(330px,430px) minmax(0,1fr);gap:24px;margin-top:10px}
.panel{background:var(--shade-1);border-radius:10px;padding:12px 14px;align-self:start}
.rows{display:grid;gap:2px;max-height:72vh;overflow-y:auto;padding:0 10px 0 2px}
.rows .agent{display:grid;grid-template-columns:minmax(0,1fr) 92px 36px;column-gap:10px;
  align-items:center;border-top:1px solid var(--grid);padding:3px 0}
.rows .name{grid-column:1/-1;font-weight:600;overflow:hidden;text-overflow:ellipsis;
  white-space:nowrap}
.rows .q-slider{padding:0 8px}
.member{display:flex;flex-wrap:wrap;gap:4px 12px;align-items:center;padding:3px 0;
  border-top:1px solid var(--grid)}
.member .name{flex:1 1 150px;min-width:0;font-weight:600;overflow:hidden;text-overflow:ellipsis;
  white-space:nowrap}
.figures{display:flex;flex-wrap:wrap;gap:6px 26px;margin:8px 0}
.figures div{display:flex;flex-direction:column}
.figures b{font-size:1.5em;font-weight:650;line-height:1.2}
.figures span,.hint{color:var(--muted);font-size:.88em}
.mark{margin:.4em 0;padding:.45em .7em;border-left:4px solid var(--muted);
  background:var(--shade-1);overflow-wrap:anywhere}
.mark.good{border-color:var(--good)}.mark.bad{border-color:var(--bad)}
.mark.unsure{border-color:var(--unsure)}
.verdict .mark{font-size:1.15em;font-weight:600}
td.good{color:var(--good)}td.bad{color:var(--bad)}td.unsure{color:var(--unsure)}
.scroll{overflow-x:auto;margin:.6em 0}
table{border-collapse:collapse;font-size:.95em;font-variant-numeric:tabular-nums}
caption{text-align:left;color:var(--muted);padding-bottom:4px;font-size:.9em}
th,td{padding:4px 10px;text-align:right;border-bottom:1px solid var(--grid);vertical-align:top}
thead th{color:var(--muted);font-weight:600;vertical-align:bottom}
tbody th,tfoot th,th:first-child{text-align:left;font-weight:600;max-width:260px;
  overflow-wrap:anywhere}
td.text,td.words,td.short{text-align:left}th.text,th.words,th.short{text-align:left}
tfoot th,tfoot td{border-top:2px solid var(--muted);border-bottom:0;font-weight:600}
p{margin:.5em 0;max-width:75ch;overflow-wrap:anywhere}
ul{margin:.4em 0;padding-left:1.2em;max-width:85ch;list-style:disc}li{overflow-wrap:anywhere}
.q-tab{min-height:38px}.q-field--dense .q-field__control{height:34px;min-height:34px}
.chart{height:340px;width:100%}
.busy{color:var(--muted);min-height:1.4em;font-size:.9em}
:focus-visible{outline:2px solid var(--series-2)!important;outline-offset:2px}
@media (max-width:860px){.desk{grid-template-columns:minmax(0,1fr)}.rows{max-height:none}
  .app{padding:8px 10px 40px}.seen{order:-1}}
@media print{.panel,.bar .tools,.q-tabs,.busy,.hint{display:none!important}
  .desk{display:block}.app{max-width:none;padding:0}.rows{max-height:none}}
"""
)

# Tells the server when the visitor goes back or forward; its own steps are numbered.
SCRIPT = """
<script>
window.addEventListener("popstate", (event) =>
  emitEvent("address", { query: location.search, depth: (event.state || {}).depth || 0 }));
</script>
"""
