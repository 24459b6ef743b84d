// Keeps an open page up to date. The page works without it, and then stays as it was loaded.
"use strict";

const live = document.getElementById("live");
const state = document.getElementById("state");
const age = document.getElementById("age");
const at = document.getElementById("at");
let received = performance.now(); // when the shown state came
let heard = received; // when it was last true
const loaded = at && Date.parse(at.dateTime) - received; // turns a time of performance.now into that of the server
let trouble = null; // why the page is not kept up to date, as text and kind

const staleAfter = 3e3; // ms: longer than between two reads, unless Redis is slow
const lostAfter = 10e3; // ms: longer than the server needs to tell of an outage

// say shows whether the page is up to date. kind chooses its colour.
function say(text, kind) {
  if (state.textContent !== text) state.textContent = text;
  state.className = kind;
}

// judge says how old the page is, unless that is too little to matter.
function judge() {
  const ms = performance.now() - heard;
  if (trouble) say(trouble.text, trouble.kind);
  else if (ms >= lostAfter) say("no news: not up to date", "bad");
  else if (ms >= staleAfter) say("stale", "stale");
  const text = trouble || ms >= staleAfter ? "as of " + Math.floor(ms / 1000) + " s ago" : "";
  if (age.textContent !== text) age.textContent = text;
  const exact = new Date(loaded + heard).toISOString();
  if (at.dateTime !== exact) {
    at.dateTime = exact;
    at.textContent = exact.slice(0, 10) + " " + exact.slice(11, 19) + " UTC";
  }
}

// current returns true while the shown state is known to be that of now.
function current() {
  return !trouble && performance.now() - heard < staleAfter;
}

// fresh notes that the shown state is that of now. It may be that of this process alone, while Redis does not answer.
function fresh() {
  heard = performance.now();
  trouble = null;
  const outage = live.querySelector("[data-outage]");
  if (outage) say(outage.dataset.outage + ": from the memory of this process", "bad");
  else say("live", "good");
  judge();
  count();
}

function fail(text, kind) {
  trouble = { text, kind };
  judge();
  count();
}

// morph makes a node like another one, and keeps what is equal: the focus and a selection stay where they are.
function morph(node, wanted) {
  for (const { name } of [...node.attributes]) if (!wanted.hasAttribute(name)) node.removeAttribute(name);
  for (const { name, value } of wanted.attributes) if (node.getAttribute(name) !== value) node.setAttribute(name, value);
  const olds = [...node.childNodes], news = [...wanted.childNodes];
  const byId = new Map(olds.filter((o) => o.id).map((o) => [o.id, o]));
  let next = node.firstChild;
  for (const n of news) {
    let o = n.id ? byId.get(n.id) : next;
    if (!o || o.nodeType !== n.nodeType || o.nodeName !== n.nodeName || (o.id || "") !== (n.id || "")) {
      node.insertBefore(n, next);
      continue;
    }
    if (o !== next) node.insertBefore(o, next);
    else next = next.nextSibling;
    if (o.nodeType === Node.ELEMENT_NODE) morph(o, n);
    else if (o.data !== n.data) o.data = n.data;
  }
  while (next) {
    const gone = next;
    next = next.nextSibling;
    gone.remove();
  }
}

// written returns a time that runs out, as the server writes it.
function written(ms) {
  const s = Math.floor(ms / 1000);
  if (ms < 60e3) return (ms / 1000).toFixed(1) + " s";
  if (s < 3600) return Math.floor(s / 60) + " min " + (s % 60) + " s";
  if (s < 172800) return Math.floor(s / 3600) + " h " + Math.floor((s % 3600) / 60) + " min";
  return Math.floor(s / 86400) + " d " + Math.floor((s % 86400) / 3600) + " h";
}

// count moves the bars and the times beside them. They stand still while the page is not up to date, as of the time that it names.
function count() {
  const passed = Math.max((current() ? performance.now() : heard) - received, 0);
  for (const bar of live.querySelectorAll("[data-left]")) {
    const left = Math.max(bar.dataset.left - passed, 0);
    if (bar.nodeName === "PROGRESS") {
      bar.value = left;
    } else {
      const text = written(left);
      if (bar.textContent !== text) bar.textContent = text;
    }
  }
}

function show(html) {
  const wanted = document.createElement("section");
  wanted.innerHTML = html;
  for (const { name, value } of live.attributes) wanted.setAttribute(name, value);
  morph(live, wanted);
  received = performance.now();
}

// watch lets events come while the page can be seen: a browser has few connections for all of its tabs.
let events = null;
function watch() {
  if (document.hidden) {
    if (events) events.close();
    events = null;
  } else if (!events) {
    events = open();
  }
}

function open() {
  const address = new URL(location.href);
  address.searchParams.set("format", "events");
  const events = new EventSource(address);
  events.addEventListener("live", (e) => {
    if (live.dataset.reload) { // the page was loaded with an error, which is over
      events.close();
      location.reload();
      return;
    }
    show(e.data);
    fresh();
  });
  events.addEventListener("same", () => {
    if (!trouble) fresh(); // only a whole state ends a problem
  });
  events.addEventListener("problem", (e) => fail(e.data + ": not up to date", "bad"));
  events.onerror = () => {
    if (events.readyState === EventSource.CLOSED) fail("not kept up to date: reload the page", "stale");
    else fail("connection lost: not up to date", "bad");
  };
  return events;
}

if (live && live.dataset.live) {
  watch();
  addEventListener("visibilitychange", watch); // it comes before the page is left or kept for going back, too
  const calm = matchMedia("(prefers-reduced-motion: reduce)").matches;
  setInterval(() => {
    count();
    judge();
  }, calm ? 1000 : 200);
}
