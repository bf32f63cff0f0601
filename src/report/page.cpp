// SPDX-License-Identifier: Apache-2.0
#include "report/chart.h"

namespace plimsoll::report {

std::string_view page_style() {
  // Eight colours that differ in lightness as well as in hue, on white and on near-black.
  return R"(:root{color-scheme:light dark;--back:#fff;--text:#1b1f24;--soft:#57606a;--line:#d5dae0;--box:#f6f8fa;
--bad:#b42318;--c0:#0b5cad;--c1:#d9480f;--c2:#2b8a3e;--c3:#7048c6;--c4:#c2255c;--c5:#0b7285;--c6:#9a6700;--c7:#495057}
@media(prefers-color-scheme:dark){:root{--back:#0f1317;--text:#e6edf3;--soft:#9aa5b1;--line:#2f3740;--box:#171c22;
--bad:#ff8a80;--c0:#6cb2ff;--c1:#ff9a5c;--c2:#6fd684;--c3:#b79cff;--c4:#ff8fb3;--c5:#5cd3e6;--c6:#e6b84d;--c7:#aeb6bf}}
*{box-sizing:border-box}
body{margin:0 auto;padding:16px;max-width:1120px;background:var(--back);color:var(--text);
font:15px/1.45 system-ui,-apple-system,"Segoe UI",Roboto,sans-serif}
h1{font-size:1.35rem;margin:.2em 0}h2{font-size:1.1rem;margin:1.4em 0 .5em}p{margin:.4em 0}
.soft{color:var(--soft)}.bad{color:var(--bad)}
.charts{display:grid;gap:16px;grid-template-columns:repeat(auto-fit,minmax(min(100%,420px),1fr))}
figure{margin:0;padding:10px;border:1px solid var(--line);border-radius:8px;background:var(--box);min-width:0}
figcaption{font-weight:600;margin-bottom:4px}
svg{display:block;width:100%;height:auto}svg text{fill:var(--soft);font-size:12px}
svg path{fill:none;stroke-width:1.8}.grid{stroke:var(--line);stroke-width:.8!important}
.legend{display:flex;flex-wrap:wrap;gap:2px 12px;list-style:none;margin:0 0 4px;padding:0;font-size:.85rem}
.legend span{display:inline-block;width:12px;height:12px;border-radius:3px;margin-right:5px;vertical-align:-1px}
.wide{overflow-x:auto}
table{border-collapse:collapse;font-variant-numeric:tabular-nums}
th,td{padding:3px 10px;border-bottom:1px solid var(--line);text-align:right;white-space:nowrap}
th:first-child,td:first-child{text-align:left;padding-left:0}td.text{text-align:left;white-space:normal;overflow-wrap:anywhere}
summary{cursor:pointer;font-weight:600;font-size:1.1rem;padding:10px 0}
.l0{stroke:var(--c0)}.l1{stroke:var(--c1)}.l2{stroke:var(--c2)}.l3{stroke:var(--c3)}.l4{stroke:var(--c4)}
.l5{stroke:var(--c5)}.l6{stroke:var(--c6)}.l7{stroke:var(--c7)}
.f0{fill:var(--c0)}.f1{fill:var(--c1)}.f2{fill:var(--c2)}.f3{fill:var(--c3)}.f4{fill:var(--c4)}
.f5{fill:var(--c5)}.f6{fill:var(--c6)}.f7{fill:var(--c7)}
.b0{background:var(--c0)}.b1{background:var(--c1)}.b2{background:var(--c2)}.b3{background:var(--c3)}
.b4{background:var(--c4)}.b5{background:var(--c5)}.b6{background:var(--c6)}.b7{background:var(--c7)}
)";
}

std::string to_page(std::string_view title, std::string_view body) {
  std::string out = "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"/>\n";
  out += "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n<title>";
  out += escaped_markup(title);
  out += "</title>\n<style>\n";
  out += page_style();
  out += "</style></head>\n<body>\n";
  out += body;
  return out + "</body></html>\n";
}

}  // namespace plimsoll::report
