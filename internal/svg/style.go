package svg

// style has a background of its own, since a page may be dark while the reader's system prefers light colours.
const style = `<style>
text { font: 15px system-ui, "Segoe UI", Helvetica, Arial, sans-serif; fill: #1f2328 }
.b { font-weight: 600 }
.note, .on-plain, .on-held, .on-good, .on-wait, .on-bad { font-size: 13px }
.note, .on-plain { fill: #59636e }
.on-held { fill: #0550ae } .on-good { fill: #116329 } .on-wait { fill: #7d4e00 } .on-bad { fill: #a40e26 }
path { fill: none; stroke: #59636e; stroke-width: 1.5 }
.head { fill: #59636e; stroke: none } .grid { stroke: #d1d9e0 }
.paper { fill: #ffffff }
.plain { fill: #f6f8fa; stroke: #818b98 }
.held { fill: #ddf4ff; stroke: #0969da }
.good { fill: #dafbe1; stroke: #1a7f37 }
.wait { fill: #fff8c5; stroke: #9a6700 }
.bad { fill: #ffebe9; stroke: #cf222e }
@media (prefers-color-scheme: dark) {
text { fill: #f0f6fc }
.note, .on-plain { fill: #9198a1 }
.on-held { fill: #79c0ff } .on-good { fill: #56d364 } .on-wait { fill: #e3b341 } .on-bad { fill: #ff7b72 }
path { stroke: #9198a1 }
.head { fill: #9198a1; stroke: none } .grid { stroke: #30363d }
.paper { fill: #0d1117 }
.plain { fill: #151b23; stroke: #656c76 }
.held { fill: #10264a; stroke: #4493f8 }
.good { fill: #0f2d1a; stroke: #3fb950 }
.wait { fill: #302408; stroke: #d29922 }
.bad { fill: #3b1519; stroke: #f85149 }
}
</style>
<defs><marker id="head" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" markerHeight="7" orient="auto">` +
	`<path class="head" d="M0 1L10 5L0 9z"/></marker></defs>
<rect class="paper" width="100%" height="100%" rx="6"/>
`
