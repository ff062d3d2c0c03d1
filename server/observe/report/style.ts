/** The report's look, light and dark. */
export const style = `
:root{color-scheme:light dark;--ink:#1d2430;--soft:#5f6b7a;--line:#dfe4ea;--paper:#fff;--well:#f5f7f9;--in:#4c7dd8;--out:#e0913a;--good:#1f7a45;--bad:#b3392f}
@media(prefers-color-scheme:dark){:root{--ink:#e6eaf0;--soft:#98a3b3;--line:#323a46;--paper:#171b21;--well:#1f252d;--in:#6f9cf0;--out:#e9a95c;--good:#5cc489;--bad:#f0867c}}
*{box-sizing:border-box}body{margin:0;background:var(--paper);color:var(--ink);font:15px/1.55 system-ui,"PingFang SC","Microsoft YaHei","Noto Sans CJK SC",sans-serif}
main{max-width:860px;margin:0 auto;padding:24px 16px 64px}h1{font-size:22px;margin:0 0 4px;overflow-wrap:anywhere}h2{font-size:17px;margin:32px 0 8px}h4{font-size:14px;margin:0 0 4px}h5{font-size:12px;margin:8px 0 2px;color:var(--soft)}
.lead,small{color:var(--soft);font-weight:400}small{font-size:12px}table{border-collapse:collapse;width:100%;font-size:13px;font-variant-numeric:tabular-nums}
th,td{padding:4px 8px;border-bottom:1px solid var(--line);text-align:right;vertical-align:top}th:first-child{text-align:left;font-weight:500;overflow-wrap:anywhere}.meter{width:120px}.meter i{display:block;height:8px;margin-top:6px;background:var(--in);border-radius:2px;min-width:1px}
.unknown{color:var(--bad)}figure{margin:16px 0}svg{width:100%;height:auto}svg text{font-size:10px;fill:var(--soft)}.in{fill:var(--in)}.out{fill:var(--out)}.key{display:inline-block;width:10px;height:10px;border-radius:2px;margin-left:8px}.key.in{background:var(--in)}.key.out{background:var(--out)}figcaption{font-size:12px;color:var(--soft)}
details.turn{border:1px solid var(--line);border-radius:8px;margin:8px 0;padding:0 12px}summary{cursor:pointer;padding:8px 0;overflow-wrap:anywhere}blockquote{margin:8px 0;padding:8px 12px;border-radius:8px;background:var(--well);white-space:pre-wrap;overflow-wrap:anywhere}blockquote small{display:block}.reply{border-left:3px solid var(--good)}
.step{border-top:1px solid var(--line);padding:8px 0}.text{white-space:pre-wrap;overflow-wrap:anywhere}.tool{margin:4px 0;padding:0 8px;background:var(--well);border-radius:6px}.tool.failed summary,.warn{color:var(--bad)}
pre{margin:0 0 8px;padding:8px;overflow:auto;max-height:360px;background:var(--well);border-radius:6px;font:12px/1.45 ui-monospace,Consolas,monospace;white-space:pre-wrap;overflow-wrap:anywhere}.diff .added{color:var(--good)}.diff .removed{color:var(--bad)}.gap{color:var(--soft)}.note{color:var(--soft);font-size:13px}
@media print{details{break-inside:avoid}pre{max-height:none}}
`;
