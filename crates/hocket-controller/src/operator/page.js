"use strict";
const id = (name) => document.getElementById(name);

function table(name, heads, rows) {
  const body = rows.map((row) => {
    const line = document.createElement("tr");
    for (const value of row) {
      const cell = document.createElement("td");
      cell.textContent = value;
      if (typeof value === "number") cell.className = "n";
      line.append(cell);
    }
    return line;
  });
  const head = document.createElement("tr");
  heads.forEach((text, i) => {
    const cell = document.createElement("th");
    cell.textContent = text;
    if (rows.length && typeof rows[0][i] === "number") cell.className = "n";
    head.append(cell);
  });
  id(name).replaceChildren(head, ...body);
}

function numbers(state) {
  const avoided = Math.max(0, state.expected_excess - state.excess);
  const shown = [
    ["hosts", `${state.sessions} of ${state.hosts}`],
    ["flows", state.flows],
    ["jobs", state.job_count],
    ["flows over their links' share", state.excess],
    ["expected with hashing", state.expected_excess.toFixed(1)],
    ["collisions avoided", avoided.toFixed(1)],
    ["epoch", state.epoch],
  ];
  id("numbers").replaceChildren(...shown.map(([name, value]) => {
    const group = document.createElement("div");
    const term = document.createElement("dt");
    const text = document.createElement("dd");
    term.textContent = name;
    text.textContent = value;
    group.append(term, text);
    return group;
  }));
}

function colour(part) {
  const from = [68, 119, 170], to = [204, 102, 119];
  const mix = from.map((value, i) => Math.round(value + (to[i] - value) * part));
  return `rgb(${mix.join(",")})`;
}

function draw(state) {
  const canvas = id("fabric");
  const pen = canvas.getContext("2d");
  const ink = getComputedStyle(document.body).color;
  const { width, height } = canvas;
  pen.clearRect(0, 0, width, height);
  if (!state.links) {
    id("note").textContent = "More links than this page draws; the fullest are below.";
    return;
  }
  const place = new Map();
  state.tiers.forEach((tier, row) => {
    const y = 30 + row * (height - 60) / Math.max(1, state.tiers.length - 1);
    tier.switches.forEach((name, i) => {
      place.set(name, [(i + 0.5) * width / tier.switches.length, y]);
    });
  });
  const { src, dst, up, load, failed } = state.links;
  const most = Math.max(1, ...load);
  id("most").textContent = `${most} flows`;
  id("note").textContent = "Each line is a link; those that lead up are drawn left of those that lead down.";
  for (let i = 0; i < src.length; i++) {
    const [x, y] = place.get(src[i]), [a, b] = place.get(dst[i]);
    const side = up[i] ? -2 : 2;
    pen.strokeStyle = failed[i] ? "#999" : colour(load[i] / most);
    pen.setLineDash(failed[i] ? [4, 4] : []);
    pen.globalAlpha = failed[i] || load[i] ? 0.9 : 0.2;
    pen.lineWidth = 1 + 3 * load[i] / most;
    pen.beginPath();
    pen.moveTo(x + side, y);
    pen.lineTo(a + side, b);
    pen.stroke();
  }
  pen.globalAlpha = 1;
  pen.setLineDash([]);
  pen.fillStyle = ink;
  pen.textAlign = "center";
  pen.font = "13px system-ui, sans-serif";
  state.tiers.forEach((tier, row) => {
    const spread = width / tier.switches.length;
    for (const name of tier.switches) {
      const [x, y] = place.get(name);
      pen.beginPath();
      pen.arc(x, y, 5, 0, 7);
      pen.fill();
      if (spread > 46) pen.fillText(name, x, y + (row === 0 ? -12 : 20));
    }
  });
}

function show(state) {
  if (!state.active) {
    id("state").textContent = "standby: another controller is active";
    return;
  }
  id("state").textContent = `${state.name}, ${state.synced ? "ready" : "recovering"}`;
  numbers(state);
  draw(state);
  table("links", ["from", "to", "flows"], state.worst_links.map((l) => [l.src, l.dst, l.load]));
  table("flows", ["host", "from", "to", "job", "fullest link"],
    state.worst_flows.map((f) => [f.host, f.src, f.dst, f.job, f.load]));
  table("jobs", ["job", "leader", "flows", ""],
    state.jobs.map((j) => [j.job, j.leader, j.flows, j.live ? "live" : "waiting"]));
  table("moves", ["reason", "flows"], Object.entries(state.moves));
}

const news = new EventSource("news");
news.onmessage = (event) => { if (event.data) show(JSON.parse(event.data)); };
news.onerror = () => { id("state").textContent = "no answer; trying again"; };
fetch("state").then((answer) => answer.json()).then(show);
