#pragma once
// SPDX-License-Identifier: MIT

// The look of the report page and its one small script (values under the pointer). Everything reads without the script.

#include <engram/version.hpp>

namespace engram {

inline constexpr const char* report_css = R"css(
:root{--paper:#fbfaf7;--card:#fff;--ink:#1c1d21;--soft:#5d6069;--faint:#8b8e97;--rule:#e4e1d9;--track:#efece5;--right:#1d8a5b;
--wrong:#cf3f45;--accent:#2563d9;--k0:#2563d9;--k1:#dd6b20;--k2:#0e9384;--k3:#a745b5;--k4:#b58900;--k5:#cf3f5f;--k6:#4197c4;
--k7:#6f7f24;--k8:#8d6748;--k9:#6b7280}
@media (prefers-color-scheme:dark){:root{--paper:#15161a;--card:#1c1e23;--ink:#ecebe6;--soft:#a9abb3;--faint:#7d808a;--rule:#30323a;
--track:#2a2c33;--right:#3fc48a;--wrong:#f2717a;--accent:#7ba7ff;--k0:#7ba7ff;--k1:#f59e5b;--k2:#3cc9b6;--k3:#d78be3;--k4:#e0bd4a;
--k5:#f58aa3;--k6:#7fc6ea;--k7:#b5c463;--k8:#cfa787;--k9:#a5abb8}}
*{box-sizing:border-box}
html{color-scheme:light dark;-webkit-text-size-adjust:100%}
body{margin:0;background:var(--paper);color:var(--ink);font:16px/1.55 system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",
"DejaVu Sans",sans-serif;-webkit-print-color-adjust:exact;print-color-adjust:exact}
main{max-width:1080px;margin:0 auto;padding:56px 32px 72px}
.brand{font-size:13px;letter-spacing:.02em;color:var(--soft);margin:0 0 20px}.brand b{color:var(--ink)}
h1,h2,h3{font-family:"Iowan Old Style",Charter,"Palatino Linotype",Palatino,"Bitstream Charter",Georgia,"DejaVu Serif",serif;
font-weight:600;line-height:1.2;text-wrap:balance;overflow-wrap:break-word}
h1{font-size:clamp(28px,4.6vw,46px);line-height:1.14;letter-spacing:-.012em;margin:0 0 18px;max-width:22em}
h2{font-size:27px;margin:64px 0 6px}h3{font-size:20px;margin:44px 0 4px}h4{font-size:14px;font-weight:600;margin:0 0 6px}
.lead{font-size:18px;color:var(--soft);max-width:44em;margin:0}.sub{color:var(--soft);max-width:46em;margin:0 0 16px;font-size:15px}
figure{margin:16px 0 0}figcaption{color:var(--soft);font-size:13.5px;line-height:1.5;max-width:46em}
svg{display:block;width:100%;height:auto;overflow:visible;font-family:inherit}
svg text{font-size:12.5px;fill:var(--soft)}svg .title{fill:var(--soft);font-size:12.5px}svg .note{fill:var(--soft);font-size:12px}
svg .end{font-size:13px;font-weight:600}svg .name{fill:var(--ink);font-size:13px}
svg .value{fill:var(--ink);font-size:13px;font-variant-numeric:tabular-nums}
.grid{stroke:var(--rule);stroke-width:1}.axis{stroke:var(--faint);stroke-width:1}
.reference{stroke:var(--soft);stroke-width:1.2;stroke-dasharray:2 4;stroke-linecap:round}
.c0{--c:var(--k0)}.c1{--c:var(--k1)}.c2{--c:var(--k2)}.c3{--c:var(--k3)}.c4{--c:var(--k4)}.c5{--c:var(--k5)}.c6{--c:var(--k6)}
.c7{--c:var(--k7)}.c8{--c:var(--k8)}.c9{--c:var(--k9)}
.line{fill:none;stroke:var(--c);stroke-width:2.4;stroke-linejoin:round;stroke-linecap:round}
.tail{fill:none;stroke:var(--c);stroke-width:1;stroke-opacity:.6}.band{fill:var(--c);fill-opacity:.14;stroke:none}
.leader{fill:none;stroke:var(--c);stroke-width:1;stroke-opacity:.5}svg text.end{fill:var(--c)}
.bars{max-width:380px}.track{fill:var(--track)}.bar{fill:var(--c)}.whisker{fill:none;stroke:var(--ink);stroke-width:1.4}
.plot{position:relative}
.legend{display:flex;flex-wrap:wrap;gap:4px 18px;font-size:14px;margin:0 0 8px;padding:0;list-style:none}
.legend i,.dot{display:inline-block;width:11px;height:11px;border-radius:50%;background:var(--c);margin-right:7px}
.narrow{display:none}
.tip{position:absolute;pointer-events:none;display:none;background:var(--card);border:1px solid var(--rule);border-radius:8px;
padding:8px 12px;font-size:13px;line-height:1.5;box-shadow:0 6px 24px #0002;white-space:nowrap;font-variant-numeric:tabular-nums}
.tip b{display:block;font-weight:600}
.scroll{overflow-x:auto;margin:16px 0 0}
table{border-collapse:collapse;width:100%;font-variant-numeric:tabular-nums}
th,td{padding:12px 14px;text-align:right;border-bottom:1px solid var(--rule);white-space:nowrap;vertical-align:top}
th:first-child,td:first-child{text-align:left;padding-left:0}thead th{font-size:13px;font-weight:600;color:var(--soft);
vertical-align:bottom;border-bottom-color:var(--faint)}
tbody th{font-weight:600}tbody th small{display:block;font-weight:400;color:var(--faint);font-size:12.5px}
td .big{font-size:18px}td .se{color:var(--soft);font-size:13px}td small{display:block;color:var(--faint);font-size:12.5px}
td.best .big{font-weight:700;color:var(--accent)}td.best{background:color-mix(in srgb,var(--accent) 8%,transparent)}
.levels{display:grid;grid-template-columns:repeat(auto-fit,minmax(270px,1fr));gap:28px 36px;margin:20px 0 0}
.heat td{text-align:center;min-width:96px;border:3px solid var(--paper);border-radius:8px;
background:color-mix(in srgb,var(--accent) calc(var(--v)*78%),var(--track))}
.heat td.strong{color:#fff}.heat td.none{background:none;color:var(--faint)}.heat th{border-bottom:0}
.heat thead th{text-align:center;white-space:normal;vertical-align:bottom}
@media (prefers-color-scheme:dark){.heat td.strong{color:#0e1017}}
.stack{display:grid;gap:24px}.unknown{fill:none;stroke:var(--rule);stroke-width:1}svg.heatmap{margin:6px 0 0}
.footnotes{color:var(--soft);font-size:13.5px;padding-left:18px;max-width:60em}
.figures{display:flex;flex-wrap:wrap;gap:14px 44px;list-style:none;padding:0;margin:18px 0 14px}
.figures li{color:var(--soft);font-size:15px;max-width:21em}.figures b{font-size:26px;color:var(--ink);font-weight:600}
.figures span{display:block;font-size:13.5px;line-height:1.4}
.key{font-size:13.5px;color:var(--soft);max-width:52em;margin:0 0 14px}
.swatch{display:inline-block;width:12px;height:12px;border:2.5px solid;border-radius:3px;vertical-align:-1px;margin:0 3px 0 4px}
.swatch.right{border-color:var(--right)}.swatch.wrong{border-color:var(--wrong)}
.swatch.bar{height:5px;vertical-align:2px;border:0}.swatch.bar.right{background:var(--right)}.swatch.bar.wrong{background:var(--wrong)}
.strip{display:grid;grid-template-columns:repeat(auto-fill,minmax(104px,1fr));gap:18px 12px;list-style:none;margin:0;padding:0}
.strip li{font-size:12px;min-width:0}.when{display:block;color:var(--soft);line-height:1.5}.when b{color:var(--ink)}
.shown,.thumb{display:block;background-size:100% 100%;background-color:var(--track);image-rendering:pixelated;font-style:normal}
.shown{width:100%;border:3px solid;border-radius:6px}.right>.shown{border-color:var(--right)}.wrong>.shown{border-color:var(--wrong)}
.strip li:not(.repeat)>.shown{border-style:dotted}
.recalled{display:flex;align-items:flex-start;gap:5px;margin-top:5px}.recalled>span{flex:1 1 0;max-width:46%}.recalled>span:first-child{flex:0 0 46%}
.thumb{width:100%;border-radius:3px;outline:1px solid var(--rule);outline-offset:-1px;opacity:calc(.3 + .7*var(--w))}
.recalled u{display:block;height:4px;margin-top:3px;border-radius:2px;text-decoration:none;background:linear-gradient(90deg,
var(--b) calc(var(--w)*100%),var(--track) 0)}.same u{--b:var(--right)}.other u{--b:var(--wrong)}
.recalled.none{display:block}.none{color:var(--faint);font-size:11px}.blank{display:grid;place-items:center;color:var(--soft);overflow:hidden;font-size:10px}
.mapped{display:flex;flex-wrap:wrap;gap:12px 32px;align-items:start;margin:32px 0 0}.mapped svg{flex:1 1 420px}
.mapped figcaption{flex:1 1 230px;max-width:26em;padding-top:6px}
.field{fill:var(--track);fill-opacity:.55}.weight{fill:var(--accent)}.weight.right{stroke:var(--right);stroke-width:1.5}
.weight.wrong{stroke:var(--wrong);stroke-width:1.5}circle.right{fill:var(--right);stroke:var(--right)}
circle.wrong{fill:var(--wrong);stroke:var(--wrong)}circle.new{fill:none}
details{border-top:1px solid var(--rule);padding:12px 0}details>summary{cursor:pointer;font-weight:600}
details[open]>summary{margin-bottom:12px}details details{margin-left:20px}summary small{font-weight:400;color:var(--soft);margin-left:8px}
.runs td,.runs th{padding:7px 12px;font-size:14px}.runs td:first-child,.runs th:first-child{padding-left:0}
.settings{columns:300px;column-gap:36px;font-size:13px;margin:0 0 8px;padding:0;list-style:none}
.settings li{display:flex;justify-content:space-between;gap:12px;border-bottom:1px dotted var(--rule);break-inside:avoid;padding:2px 0}
.settings span{color:var(--soft);overflow-wrap:anywhere}.settings b{font-weight:500;text-align:right;overflow-wrap:anywhere}
.pair{display:grid;grid-template-columns:repeat(auto-fit,minmax(300px,1fr));gap:24px 36px;align-items:start}
.strips{display:flex;flex-wrap:wrap;gap:8px 28px}.strips figcaption{color:var(--ink);font-weight:600;margin:0 0 6px}
.strips small{font-weight:400;color:var(--soft);margin-left:8px}.strips img{display:block;max-width:100%;height:auto;border-radius:6px}
.small-charts{display:grid;grid-template-columns:repeat(auto-fit,minmax(290px,1fr));gap:24px 32px}
footer{margin-top:64px;color:var(--faint);font-size:13px}
@media (max-width:680px){main{padding:32px 18px 48px}.wide{display:none}.narrow{display:block}.legend.narrow{display:flex}.lead{font-size:16.5px}
h2{margin-top:48px}th,td{padding:10px 10px}.mapped svg{flex-basis:100%}td .big{font-size:16px}thead th{white-space:normal;min-width:6.2em}
.strip{grid-template-columns:repeat(auto-fill,minmax(84px,1fr))}.figures{gap:12px 28px}}
)css";

inline constexpr const char* report_script = R"js(
for(const svg of document.querySelectorAll('svg[data-curves]')){
 const d=JSON.parse(svg.dataset.curves),box=svg.parentElement,names=[...box.querySelectorAll('[data-name]')];
 const tip=document.createElement('div');tip.className='tip';box.append(tip);
 const ns='http://www.w3.org/2000/svg',g=document.createElementNS(ns,'g');svg.append(g);
 const count=v=>v>=1e6?(v/1e6).toPrecision(3)+' M':v>=1e3?(v/1e3).toPrecision(3)+' k':Math.round(v);
 const leave=()=>{tip.style.display='none';g.replaceChildren()};
 svg.addEventListener('pointerleave',leave);
 svg.addEventListener('pointermove',e=>{
  const r=svg.getBoundingClientRect(),w=svg.viewBox.baseVal.width,x=(e.clientX-r.left)*w/r.width;
  if(x<d.l||x>d.r)return leave();
  const at=(x-d.l)/(d.r-d.l)*d.x,step=d.w?Math.round(at):at,rows=[];g.replaceChildren();
  const add=(n,a)=>{const o=document.createElementNS(ns,n);for(const k in a)o.setAttribute(k,a[k]);g.append(o)};
  add('line',{class:'axis',x1:x,x2:x,y1:d.t,y2:d.b});
  d.s.forEach((s,i)=>{if(!s.x.length)return;let k=0;while(k<s.x.length-1&&s.x[k+1]<=step)k++;
   if(s.x[0]>step+d.x/100||s.x[s.x.length-1]<step-d.x/100)return;
   add('circle',{class:'bar c'+s.c,cx:x,cy:s.p[k],r:4});rows.push([s.y[k],s.c,i,s.n])});
  rows.sort((a,b)=>b[0]-a[0]);tip.replaceChildren();const b=document.createElement('b');b.textContent=d.w?d.u+' '+step:count(step)+' '+(d.u||'steps');tip.append(b);
  const all=names.length?names:[];
  for(const [y,c,i,n] of rows){const l=document.createElement('div');l.className='c'+c;const o=document.createElement('i');o.className='dot';
   l.append(o,(n?n+'  ':all[i]?all[i].dataset.name+'  ':'')+y);tip.append(l)}
  tip.style.display='block';const px=e.clientX-r.left,left=px>r.width/2?px-tip.offsetWidth-14:px+14;
  tip.style.left=Math.max(0,left)+'px';tip.style.top=(svg.offsetTop||0)+Math.max(0,e.clientY-r.top-20)+'px'});
}
)js";

}  // namespace engram
