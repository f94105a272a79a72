// The table: draws what it is told, asks for what the person wants, and knows no rule of the game.
import { face, back } from "./cards.js";

const $ = (id) => document.getElementById(id);
const FIRST_DISCARD = 3;
const page = document.body;
const told = $("data") && JSON.parse($("data").textContent);      // a page that was exported holds its hands itself
const still = matchMedia("(prefers-reduced-motion: reduce)").matches;

let words = {}, language = "en";
let table = { mode: "lobby", players: [] };                       // the last answer about the sitting
let track = [], at = 0, hand = 0, hands = 1;                      // the positions shown, which of them, and of which hand
let past = false;                                                 // whether a finished hand is looked at, beside the table
let bottom = 0, open = false, reviewable = false;                 // viewpoint, all cards open, whether this hand can be reviewed
let judged = null, seat = 0;                                      // the review shown
let thrown = new Set(), busy = false, timer = 0, playing = false, speed = 900;

const word = (key, values = {}) => Object.entries(values).reduce((text, [name, value]) => text.replaceAll(`{${name}}`, value), words[language][key] ?? key);
const own = (key, values) => word(`table.${key}`, values);
const signed = (n, digits = 0) => { const text = Math.abs(n).toFixed(digits); return Number(text) === 0 ? text : `${n > 0 ? "+" : "\u2212"}${text}`; };
const cardName = (card) => own("card", { rank: word(`hand.rank.${card[0]}`), suit: own(`suit.${card[1]}`) });
const say = (text) => { $("say").textContent = text.charAt(0).toUpperCase() + text.slice(1); };
const live = () => !past && at === track.length - 1;

function make(tag, attributes = {}, ...inside) {
  const made = document.createElement(tag);
  for (const [key, value] of Object.entries(attributes)) {
    if (key === "does") made.addEventListener("click", value);
    else if (typeof value === "boolean") made.toggleAttribute(key, value);
    else made.setAttribute(key, value);
  }
  made.append(...inside);
  return made;
}
const button = (text, does, more = {}) => make("button", { type: "button", does, ...more }, text);

// ---- asking

const sitting = (() => {
  if (told) return "";
  const drawn = [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  const kept = sessionStorage.getItem("sitting") ?? drawn;
  sessionStorage.setItem("sitting", kept);
  return kept;
})();

function fromPage(message) {
  const asked = told.hands[message.hand];
  if (message.do === "review") return { is: "review", hand: message.hand, review: asked.reviews.find((review) => review.seat === message.seat) };
  return { is: "replay", mode: "file", hand: message.hand, hands: told.hands.length, frames: asked.frames, review: asked.reviews.length > 0 };
}

async function ask(message) {
  if (busy) return;
  busy = true;
  $("error").textContent = "";
  try {
    let reply;
    if (told) reply = fromPage(message);
    else {
      const answer = await fetch("/do", { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ ...message, sitting, lang: language }) });
      reply = await answer.json();
    }
    busy = false;
    await hear(reply, message);
  } catch {
    $("error").textContent = own("gone");
  } finally {
    busy = false;
    page.dataset.busy = "";
    mark();
  }
}

async function hear(reply, message) {
  if (reply.is === "error") { stop(); $("error").textContent = reply.text; return; }
  if (reply.is === "review") { judged = reply.review; judge(); $("review").hidden = false; return; }
  if (reply.is === "replay") {
    if (table.mode !== reply.mode) table = { ...table, mode: reply.mode };
    past = reply.mode !== "file"; hand = reply.hand; hands = reply.hands; track = reply.frames; reviewable = reply.review;
    judged = null; $("review").hidden = true;
    const wanted = message.move ?? (past ? track.at(-1).move : 0);
    at = Math.max(0, track.findIndex((frame) => frame.move === wanted));
    thrown = new Set(); show();
    return;
  }
  const begins = ["play", "watch", "deal"].includes(message.do);
  if (begins || past || reply.mode !== table.mode || reply.hand !== hand) { track = []; at = 0; }
  if (["play", "watch", "open"].includes(message.do)) { bottom = 0; open = message.do === "watch"; }
  table = reply; past = false; hand = Math.max(0, reply.hand); hands = hand + 1; judged = null; $("review").hidden = true;
  if (reply.mode === "lobby") { track = []; stop(); show(); return; }
  if (reply.mode === "file") { await ask({ do: "replay", ...fromAddress(0) }); return; }
  thrown = new Set();
  for (const frame of reply.frames) {
    const before = track.at(-1);
    if (before && before.move === frame.move) track.pop();
    track.push(frame);
    at = track.length - 1;
    busy = frame !== reply.frames.at(-1);                         // what the opponent did is shown a move at a time
    show(before);
    if (busy && !still) await new Promise((done) => setTimeout(done, 450));
  }
}

function fromAddress(otherwise) {
  const found = /^#hand=(\d{1,6})&move=(\d{1,4})$/.exec(location.hash);
  return found ? { hand: Number(found[1]) - 1, move: Number(found[2]) } : { hand: otherwise };
}

// ---- the table

function visible(frame, who) {
  return table.mode === "play" || open || (frame.result && frame.result.shown) || (table.mode === "file" && who === bottom);
}

function drawHand(where, frame, who) {
  const cards = visible(frame, who) ? frame.hands[who] : null;
  const choosing = live() && table.mode === "play" && who === 0 && frame.discards.length > 0;
  where.replaceChildren(...(cards ?? Array(frame.size).fill(null)).map((card, place) => {
    const label = card ? cardName(card) : own("hidden"), picture = card ? face(card) : back();
    return choosing
      ? make("button", { type: "button", does: () => toggle(place), class: "slot", "aria-pressed": String(thrown.has(place)) }, picture, make("span", { class: "unseen" }, label))
      : make("span", { class: "slot", role: "img", "aria-label": label }, picture);
  }));
}

function drawSeat(frame, who, side) {
  const drew = frame.draws[who].length ? own("drew", { numbers: frame.draws[who].join(", ") }) : "";
  const stack = table.stacks && !past ? own("chips", { chips: table.stacks[who] }) : "";
  const place = word(who === frame.dealer ? "terminal.dealer" : "terminal.big_blind");
  $(`name-${side}`).textContent = frame.names[who];
  $(`facts-${side}`).textContent = [place, own("paid", { chips: frame.paid[who] }), drew, stack].filter(Boolean).join(" \u00b7 ");
  $(`value-${side}`).textContent = (visible(frame, who) && frame.values[who]) || "\u00a0";
  $(`hand-${side}`).classList.toggle("turn", frame.to_act === who);
  drawHand($(`hand-${side}`), frame, who);
}

function drawChoices(frame) {
  const made = [];
  if (table.mode === "play" && live()) {
    if (frame.result) {
      if (!table.ended) made.push(button(own("deal"), deal, { class: "main" }));
      made.push(button(own("replay"), () => ask({ do: "replay", hand })));
      if (table.review) made.push(button(own("review"), review));
    } else if (frame.discards.length) {
      made.push(button(drawText(), draw, { class: "main", id: "draw" }));
    } else for (const [action, text] of frame.choices) {
      made.push(button(text, () => act(action), { "data-action": String(action), class: action === 1 ? "main" : action === 0 ? "fold" : "" }));
    }
  }
  $("choices").replaceChildren(...made);
}

function drawTape(frame) {
  const shown = past || table.mode !== "play";
  $("tape").hidden = !shown;
  if (!shown) return;
  const rest = live() && table.mode === "watch" && frame.result;
  const icon = (text, key, does, more = {}) => button(text, does, { "aria-label": own(key), title: own(key), "data-key": key, ...more });
  const focused = document.activeElement?.dataset?.key;
  const rate = make("input", { type: "range", min: "1", max: "8", value: String(Math.round(1800 / speed)), "aria-label": own("speed"), title: own("speed") });
  rate.addEventListener("input", () => { speed = 1800 / Number(rate.value); });
  const rows = [make("div", { class: "row" },
    icon("|\u25c0", "to_first", () => go(0)), icon("\u25c0", "back", () => go(at - 1)),
    icon(playing ? "\u275a\u275a" : "\u25b6", playing ? "pause" : "run", run, { class: "main" }),
    icon("\u25b6", "step", forward, { class: "step" }), icon("\u25b6|", "to_last", () => go(track.length - 1)), make("label", { class: "speed" }, own("speed"), " ", rate))];
  const second = make("div", { class: "row" });
  if (table.mode === "file" || past) second.append(icon("\u2039", "hand_before", () => hand > 0 && turn(hand - 1)), make("span", {}, word("terminal.hand_of", { n: hand + 1, of: hands })), icon("\u203a", "hand_after", () => hand + 1 < hands && turn(hand + 1)));
  if (table.mode !== "play") second.append(button(own("viewpoint"), view, { "data-key": "viewpoint" }), button(own(open ? "close_cards" : "open_cards"), reveal, { "data-key": "reveal", "aria-pressed": String(open) }));
  if (rest) second.append(button(own("deal"), forward, { class: "main" }), button(own("replay"), () => ask({ do: "replay", hand })));
  if (reviewable && (past || table.mode === "file")) second.append(button(own("review"), review));
  if (past) second.append(button(own("to_table"), toTable));
  $("tape").replaceChildren(...rows, second);
  if (focused) $("tape").querySelector(`[data-key="${focused}"]`)?.focus({ preventScroll: true });
}

function show(before) {
  translate();
  const lobby = table.mode === "lobby";
  $("lobby").hidden = !lobby; $("table").hidden = lobby || !track.length; $("leave").hidden = lobby || Boolean(told);
  $("total").textContent = table.mode === "play" ? own("total", { chips: signed(table.total) }) : "";
  if (lobby || !track.length) { history.replaceState(null, "", location.pathname + location.search); mark(); return; }
  const frame = track[at], low = table.mode === "play" ? 0 : bottom;
  drawSeat(frame, low, "bottom"); drawSeat(frame, 1 - low, "top");
  $("pot").textContent = word("terminal.pot", { chips: frame.paid[0] + frame.paid[1] });
  $("phase").textContent = frame.phase;
  $("outcome").replaceChildren(...(frame.result ? [make("strong", {}, frame.result.text), ...frame.result.lines.map((line) => make("p", {}, line))] : []));
  drawChoices(frame); drawTape(frame);
  $("lines").replaceChildren(...frame.log.map((part) => make("li", {}, make("h3", {}, part.title), make("span", {}, part.lines.join("; ")))));
  if (table.notice && live()) $("error").textContent = table.notice;
  say(spoken(frame, before));
  for (const item of $("decisions").children) item.classList.toggle("here", Number(item.dataset.at) === frame.move);
  history.replaceState(null, "", `#hand=${hand + 1}&move=${frame.move}`);
  mark();
}

function spoken(frame, before) {
  const lines = frame.log.flatMap((part) => part.lines);
  const known = before ? before.log.flatMap((part) => part.lines).length : Math.max(0, lines.length - 1);
  const news = lines.slice(known).join("; ");
  return [news, frame.turn].filter(Boolean).join(" \u2013 ");
}

function mark() {
  const frame = track[at], yours = frame && live() && (frame.choices.length || frame.discards.length);
  page.dataset.state = busy ? "wait" : table.mode === "lobby" ? "lobby" : past || table.mode !== "play" ? "tape" : frame?.result ? "over" : yours ? "yours" : "wait";
  page.dataset.move = frame ? `${hand + 1}.${frame.move}` : "";
}

function translate() {
  document.documentElement.lang = language;
  for (const place of document.querySelectorAll("[data-word]")) place.textContent = own(place.dataset.word);
  document.title = told ? told.title : "Archie";
  for (const select of document.querySelectorAll("#lobby select[name=opponent], #watch select")) {
    if (select.options.length === 0 && table.players?.length) select.append(...table.players.map((name) => make("option", { value: name }, name)));
  }
}

// ---- doing

function act(action) {
  const frame = track[at];
  if (busy || !frame || !live() || table.mode !== "play") return;
  if (!frame.choices.some(([number]) => number === action) && !frame.discards.includes(action)) return;
  ask({ do: "act", hand, move: frame.move, action });
}
const drawText = () => (thrown.size ? own("draw", { n: thrown.size }) : own("pat"));
function draw() { act([...thrown].reduce((number, place) => number + (1 << place), FIRST_DISCARD)); }
function deal() { if (!table.ended) ask({ do: "deal" }); }
function toggle(place) {
  const frame = track[at];
  if (busy || !frame || !live() || !frame.discards.length || place >= frame.size) return;
  if (!thrown.delete(place)) thrown.add(place);
  $("hand-bottom").children[place].setAttribute("aria-pressed", String(thrown.has(place)));
  $("draw").textContent = drawText();
  say(`${cardName(frame.hands[0][place])}: ${own(thrown.has(place) ? "thrown" : "kept")}`);
}
function go(to) { const next = Math.max(0, Math.min(track.length - 1, to)); if (next !== at) { const before = track[at]; at = next; show(next > track.indexOf(before) ? before : undefined); } }
function forward() {
  if (at < track.length - 1) go(at + 1);
  else if (table.mode === "watch" && !past) return track[at].result ? ask({ do: "deal" }) : ask({ do: "next", hand, move: track[at].move });
  else stop();
  return undefined;
}
function run() { playing = !playing; clearTimeout(timer); if (playing) beat(); else show(); }
async function beat() {
  if (!playing) return;
  await forward();
  if (playing) timer = setTimeout(beat, track[at]?.result ? 2 * speed : speed);
}
function stop() { playing = false; clearTimeout(timer); if (track.length && !$("tape").hidden) drawTape(track[at]); }
function turn(to) { stop(); ask({ do: "replay", hand: to, move: 0 }); }
function view() { bottom = 1 - bottom; show(); if (judged) review(); }
function reveal() { open = !open; show(); }
async function toTable() { stop(); await ask({ do: "look" }); }
async function review() {
  seat = table.mode === "play" ? 0 : bottom;
  const place = track[at].move;
  if (!past && table.mode !== "file") await ask({ do: "replay", hand, move: place });
  say(own("wait"));
  await ask({ do: "review", hand, seat });
  if (judged) { $("review").focus({ preventScroll: true }); show(); }
}

function judge() {
  const chips = (n) => signed(n, 2);
  const bars = (decision) => decision.actions.map((x) => make("div", { class: `bar${x.played ? " played" : ""}` },
    make("span", { class: "what" }, x.played ? own("played", { action: x.text }) : x.text),
    make("meter", { min: "0", max: "1", value: String(x.probability), "aria-label": x.text }),
    make("span", { class: "much" }, `${Math.round(100 * x.probability)} %`),
    make("span", { class: "much" }, x.verdict === null ? "" : x.verdict === "best" ? own("best") : x.verdict === "as good" ? own("as_good") : `${chips(-x.loss)} \u00b1 ${x.error.toFixed(2)}`)));
  $("decisions").replaceChildren(...judged.decisions.map((decision) => make("li", { "data-at": String(decision.at) },
    make("h3", {}, button(decision.title, () => go(track.findIndex((frame) => frame.move === decision.at)))),
    make("span", { class: "small", role: "img", "aria-label": decision.hand.map(cardName).join(", ") }, ...decision.hand.map(face)),
    make("p", {}, [decision.equity === null ? "" : own("equity", { percent: Math.round(100 * decision.equity) }), decision.effective < 50 ? own("too_few", { n: Math.round(decision.effective) }) : own("effective", { n: Math.round(decision.effective) })].filter(Boolean).join(" \u00b7 ")),
    ...bars(decision))));
  $("verdict").replaceChildren(
    make("p", { class: "sum" }, own("given_up", { chips: judged.given_up.toFixed(2), error: judged.given_up_error.toFixed(2), luck: chips(judged.luck) })),
    make("p", {}, own("reviewer", { name: judged.reviewer })));
}

// ---- keys and controls

const BETTING = { f: ["fold", 0], c: ["call", 1], k: ["check", 1], r: ["raise", 2], b: ["bet", 2] };
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || /^(SELECT|INPUT|TEXTAREA)$/.test(event.target.tagName)) return;
  const frame = track[at], key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
  if (!frame || table.mode === "lobby") return;
  const tape = past || table.mode !== "play", yours = table.mode === "play" && live();
  if (yours && frame.choices.length && key in BETTING) act(BETTING[key][1]);
  else if (yours && frame.discards.length && /^[1-9]$/.test(key)) toggle(Number(key) - 1);
  else if (yours && key === "d") { if (frame.result) deal(); else if (frame.discards.length) draw(); }
  else if (yours && frame.result && key === "h") ask({ do: "replay", hand });
  else if (yours && frame.result && table.review && key === "w") review();
  else if (tape && key === "ArrowRight") forward();
  else if (tape && key === "ArrowLeft") go(at - 1);
  else if (tape && key === "Home") go(0);
  else if (tape && key === "End") go(track.length - 1);
  else if (tape && key === "p") run();
  else if (tape && key === "o" && table.mode !== "play") reveal();
  else if (tape && key === "v" && table.mode !== "play") view();
  else if (tape && key === "[" && hand > 0) turn(hand - 1);
  else if (tape && key === "]" && hand + 1 < hands) turn(hand + 1);
  else if (tape && key === "w" && reviewable) review();
  else if (past && key === "t") toTable();
  else return;
  event.preventDefault();
});
$("language").addEventListener("change", async (event) => {
  language = event.target.value;
  const reviewed = judged, frame = track[at];
  if (past || table.mode === "file") { await ask({ do: "replay", hand, move: frame.move }); if (reviewed) { await ask({ do: "review", hand, seat }); show(); } }
  else { await ask({ do: "look" }); show(); }
});
$("four").addEventListener("change", (event) => page.classList.toggle("four", event.target.checked));
$("leave").addEventListener("click", () => { stop(); ask({ do: "leave" }); });
$("play").addEventListener("submit", (event) => {
  event.preventDefault();
  const form = event.target.elements, stack = form.stack.value.trim();
  ask({ do: "play", opponent: form.opponent.value, position: form.position.value, stack: /^[0-9]+$/.test(stack) ? Number(stack) : null });
});
$("watch").addEventListener("submit", (event) => {
  event.preventDefault();
  ask({ do: "watch", first: event.target.elements.first.value, second: event.target.elements.second.value });
});
$("open").addEventListener("submit", (event) => event.preventDefault());
$("open").elements.file.addEventListener("change", async (event) => {
  const file = event.target.files[0];
  if (!file) return;
  if (file.size > 1000000) { $("error").textContent = own("large"); return; }
  bottom = 0; open = false;
  await ask({ do: "open", text: await file.text() });
  event.target.value = "";
});
addEventListener("hashchange", () => {
  const wanted = fromAddress(-1);
  if (wanted.hand < 0 || table.mode === "lobby") return;
  const there = track.findIndex((frame) => frame.move === wanted.move);
  if (wanted.hand === hand && there >= 0) go(there); else if (wanted.hand !== hand || past || table.mode === "file") visit(wanted);
});
function visit(wanted) { stop(); ask({ do: "replay", ...wanted }); }

async function begin() {
  if (told) { words = { [told.language]: told.words }; language = told.language; $("language").parentElement.hidden = true; table = { mode: "file" }; await ask({ do: "replay", ...fromAddress(0) }); }
  else {
    words = await (await fetch("/words.json")).json();
    language = navigator.languages.map((tag) => tag.slice(0, 2)).find((tag) => tag in words) ?? "en";
    const asked = new URLSearchParams(location.search).get("lang");
    if (asked in words) language = asked;
    $("language").value = language;
    const wanted = fromAddress(-1);
    await ask({ do: "look" });
    if (wanted.hand >= 0 && wanted.hand !== hand && table.mode !== "lobby" && table.mode !== "file") await ask({ do: "replay", ...wanted });
    if (table.mode === "lobby") show();
  }
  page.dataset.ready = "yes";
}
begin();
