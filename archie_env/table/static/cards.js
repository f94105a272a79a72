// Cards as SVG: suits are paths, so that no font needs their glyphs.
const NS = "http://www.w3.org/2000/svg";
const SUIT = {
  d: "M0-10 8 0 0 10-8 0Z",
  h: "M0 9C-14-1-9-10-4.5-9.5-2-9.2-.5-7.5 0-5.5.5-7.5 2-9.2 4.5-9.5 9-10 14-1 0 9Z",
  s: "M0-10C-14 0-9 7-4.5 6-2.5 5.5-1.2 4.5-.7 3.5-.9 7-2 9-3.5 10H3.5C2 9 .9 7 .7 3.5 1.2 4.5 2.5 5.5 4.5 6 9 7 14 0 0-10Z",
  c: "M-.7 2.5C-2 5.5-8.5 6-8.5 1-8.5-2.5-5-4-2.8-2.5-6-6-3.5-10 0-10S6-6 2.8-2.5C5-4 8.5-2.5 8.5 1 8.5 6 2 5.5.7 2.5.9 7 2 9 3.5 10H-3.5C-2 9-.9 7-.7 2.5Z",
};
function node(name, attributes, ...inside) {
  const made = document.createElementNS(NS, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...inside);
  return made;
}
export function face(card) {
  const [rank, suit] = card, ten = rank === "T";
  const text = node("text", { x: 17, y: 31, "text-anchor": "middle", class: "rank", ...(ten ? { textLength: 26, lengthAdjust: "spacingAndGlyphs" } : {}) });
  text.textContent = ten ? "10" : rank;
  return node("svg", { viewBox: "0 0 84 118", class: `card suit-${suit}`, "aria-hidden": "true" },
    node("rect", { x: 1, y: 1, width: 82, height: 116, rx: 9, class: "paper" }), text,
    node("path", { d: SUIT[suit], transform: "translate(17 50)" }), node("path", { d: SUIT[suit], transform: "translate(51 80) scale(2.5)" }));
}
export function back() {
  return node("svg", { viewBox: "0 0 84 118", class: "card", "aria-hidden": "true" },
    node("rect", { x: 1, y: 1, width: 82, height: 116, rx: 9, class: "paper" }), node("rect", { x: 7, y: 7, width: 70, height: 104, rx: 5, class: "back" }));
}
