// Keeps an open page up to date. The page works without it, and then stays as it was loaded.
"use strict";

const live = document.getElementById("live");
const state = document.getElementById("state");
let received = performance.now(); // when the shown state came

// say shows whether the page is up to date. kind chooses its colour.
function say(text, kind) {
  if (state.textContent !== text) state.textContent = text;
  state.className = kind;
}

// morph makes a node like another one, and keeps what is equal: the focus and a selection stay where they are.
function morph(node, wanted) {
  for (const { name } of [...node.attributes]) if (!wanted.hasAttribute(name)) node.removeAttribute(name);
  // Redis does not tell the whole TTL of a lease: the most that was ever left is a full bar.
  if (node.nodeName === "PROGRESS") wanted.max = Math.max(wanted.max, node.max);
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

// count moves the bars and the times beside them.
function count() {
  const passed = performance.now() - received;
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
  count();
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
    show(e.data);
    say("live", "good");
  });
  events.addEventListener("problem", (e) => say(e.data + ": not up to date", "bad"));
  events.onerror = () => {
    if (events.readyState === EventSource.CLOSED) say("not kept up to date: reload the page", "");
    else say("connection lost: not up to date", "bad");
  };
  return events;
}

if (live && live.dataset.live) {
  watch();
  addEventListener("visibilitychange", watch); // it comes before the page is left or kept for going back, too
  const calm = matchMedia("(prefers-reduced-motion: reduce)").matches;
  setInterval(count, calm ? 1000 : 200);
}
