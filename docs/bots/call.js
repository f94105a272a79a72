#!/usr/bin/env node
// Checks and calls; throws unpaired cards from nine to king.
const lines = require("readline").createInterface({ input: process.stdin });

function decide(message) {
  if (!message.draw) return 1;
  const ranks = message.held.at(-1).match(/../g).map((card) => card[0]);
  const alone = (rank) => ranks.filter((other) => other === rank).length === 1;
  return ranks.reduce((action, rank, k) => action + ("9TJQK".includes(rank) && alone(rank) ? 1 << k : 0), 3);
}

let answers = "";
lines.on("line", (line) => {
  const message = JSON.parse(line);
  if ("archie" in message) answers += '{"archie":1,"name":"call.js"}\n';
  else answers += `{"i":${message.i},"a":${decide(message)}}\n`;
  if (!message.left) {
    process.stdout.write(answers);
    answers = "";
  }
});
