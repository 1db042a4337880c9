// The page: a frame comes once a second, and what differs is changed in place.

import { Series, bytes, millis, rate, roundUp, share, shortKey, span } from "./figures.js";
import { Chart, draw, give, make, say } from "./pictures.js";

const at = (id) => document.getElementById(id);
const fetched = async (address) => {
  const answer = await fetch(address);
  if (!answer.ok) throw new Error(`${address}: ${answer.status}`);
  return answer.json();
};

// Transfers that are shown in full without being asked for.
const OPEN_AT_FIRST = 3;
const COLOURS = 8;
// Below this a direction of an uplink counts as unused.
const SHOWN_BPS = 10_000;
// Past transfers in the table before it is asked for more.
const LISTED_AT_FIRST = 10;

let reasons = {};
const wordsFor = (code) => reasons[code] ?? [code, code, ""];

// ---- Uplinks

class Direction {
  constructor(arrow, name) {
    this.total = new Series();
    this.own = new Series();
    this.sum = make("span");
    this.parts = ["own-part", "others-part", "idle-part"].map((cls) => make("span", { cls }));
    this.keys = ["key own", "key others", "key idle"].map((cls) => make("span", { cls }));
    this.chart = new Chart(`${name} in ten minutes, byway below and other traffic above`, true);
    const figures = make(
      "div",
      {},
      make("div", { cls: "head" }, make("b", { text: `${arrow} ${name}` }), this.sum),
      make("div", { cls: "stack", "aria-hidden": "true" }, ...this.parts),
      make("div", { cls: "legend" }, ...this.keys),
    );
    this.element = make("div", { cls: "direction" }, figures, this.chart.element);
  }

  recall(second, past) {
    this.total = new Series(second, past.total);
    this.own = new Series(second, past.own);
  }

  show(second, told) {
    this.total.push(second, told.total_bps);
    this.own.push(second, told.own_bps);
    const most = Math.max(this.total.max, this.own.max);
    this.element.hidden = most < SHOWN_BPS && told.own_bps === 0;
    if (this.element.hidden) return;
    const { own_bps: own, others_bps: others, idle_bps: idle, capacity_bps: capacity } = told;
    // Without a known capacity the bar shows the shares of what the line carries.
    const scale = capacity ?? Math.max(1, own + (others ?? 0));
    [own, others ?? 0, idle ?? 0].forEach((bps, part) => {
      this.parts[part].style.width = `${Math.min(100, (100 * bps) / scale).toFixed(1)}%`;
    });
    say(this.keys[0], `byway ${rate(own)}`);
    if (others !== undefined) say(this.keys[1], `other traffic ${rate(others)}`);
    else if (told.others_below_bps) say(this.keys[1], `other traffic less than ${rate(told.others_below_bps)}`);
    else say(this.keys[1], told.total_bps === undefined ? "other traffic: measuring…" : "no other traffic");
    const age = told.capacity_age < 5 ? "now" : `${span(told.capacity_age)} ago`;
    const full = capacity === undefined ? "" : ` of ${rate(capacity)}, measured ${age}`;
    say(this.keys[2], idle === undefined ? "idle: not known until byway has filled this line" : `idle ${rate(idle)}${full}`);
    say(this.sum, told.total_bps === undefined ? "" : `${rate(told.total_bps)} in all`);
    const top = roundUp(Math.max(most, capacity ?? 0));
    const parts = [
      { values: this.total.values, cls: "others-area", kind: "area" },
      { values: this.own.values, cls: "own-area", kind: "area" },
    ];
    const now = told.total_bps === undefined ? "" : `${rate(told.total_bps)} in all`;
    this.chart.show(parts, top, rate(top), now);
  }
}

class Uplink {
  constructor(name) {
    this.name = name;
    this.up = new Direction("↑", "sent");
    this.down = new Direction("↓", "received");
    this.paths = make("span", { cls: "soft" });
    const title = make("h3", {}, make("bdi", { text: name }), " ", this.paths);
    this.element = make("article", { cls: "card" }, title, this.up.element, this.down.element);
  }

  async recall() {
    const past = await fetched(`uplinks/${encodeURIComponent(this.name)}`);
    this.up.recall(past.second, past.up);
    this.down.recall(past.second, past.down);
  }

  show(second, told) {
    say(this.paths, told.paths ? "" : "no path of byway");
    this.up.show(second, told.up);
    this.down.show(second, told.down);
  }
}

// ---- Transfers

class PathRow {
  constructor() {
    this.name = make("bdi");
    this.state = make("span", { cls: "soft" });
    this.bps = make("span", { cls: "bps" });
    this.facts = make("div", { cls: "facts" });
    this.stroke = draw("path");
    this.node = make("i");
    const picture = draw("svg", { viewBox: "0 0 100 20", preserveAspectRatio: "none" }, this.stroke);
    this.wire = make("div", { cls: "wire", "aria-hidden": "true" }, picture, this.node, make("em"));
    const name = make("span", { cls: "name" }, make("span", { cls: "swatch", "aria-hidden": "true" }), make("b", {}, this.name), " ", this.state);
    this.element = make("li", {}, make("div", { cls: "label" }, name, this.bps), this.wire, this.facts);
    this.series = { bps: new Series(), queue_ms: new Series(), loss: new Series() };
  }

  // `sends`: whether this host, as the sender, stands at the left.
  show(second, told, colour, fastest, sends) {
    const isRelay = told.name.startsWith("relay");
    const isStill = !told.bps;
    give(this.element, "class", `c${colour}`);
    give(this.wire, "class", `wire${isStill ? " still" : ""}${isRelay ? " bent" : ""}${told.id.startsWith("s") === sends ? "" : " back"}`);
    this.node.hidden = !isRelay;
    // A detour bends; what is direct does not.
    give(this.stroke, "d", isRelay ? "M0 14C20 14 30 10 50 10S80 14 100 14" : "M0 10H100");
    const width = isStill ? 1.5 : Math.max(2, (15 * told.bps) / fastest);
    this.stroke.style.strokeWidth = `${width.toFixed(1)}px`;
    say(this.name, told.name);
    say(this.state, told.pause ? wordsFor(told.pause)[1] : told.state === "active" ? "" : told.state);
    say(this.bps, told.bps === undefined ? "not told" : rate(told.bps));
    // A relay's name has its address.
    const far = !isRelay && told.remote;
    const facts = [
      far && `${told.id.startsWith("r") ? "from" : "to"} ${far}`,
      // The smoothed RTT of a path at rest is older than its queues.
      told.base_rtt_ms != null ? `RTT ${millis(told.base_rtt_ms)} without queues` : told.rtt_ms != null && `RTT ${millis(told.rtt_ms)}`,
      told.queue_ms != null && `${millis(told.queue_ms)} in queues`,
      told.loss != null && `lost ${share(told.loss)}`,
      told.bytes && `${bytes(told.bytes)} so far`,
      told.carrier === "tcp" && !told.name.includes("TCP") && "over TCP",
      told.interface && `by uplink ${told.interface}`,
    ];
    say(this.facts, facts.filter(Boolean).join(" · "));
    this.series.bps.push(second, told.bps);
    this.series.queue_ms.push(second, told.queue_ms);
    this.series.loss.push(second, told.loss);
  }
}

class Transfer {
  constructor(id, isOpen) {
    this.id = id;
    this.rows = new Map();
    this.colours = new Map();
    this.bps = new Series();
    this.title = make("bdi");
    this.since = make("small");
    this.rate = make("span", { cls: "rate" });
    this.progress = make("progress", { max: 1 });
    this.done = make("span");
    this.reason = make("strong");
    this.meaning = make("span", { cls: "soft" });
    this.why = make("p", { cls: "why" }, this.reason, this.meaning);
    const name = make("span", { cls: "title" }, this.title, " ", this.since);
    this.button = make("button", { type: "button", "aria-controls": `body-${id}` }, name, this.rate);
    this.from = make("span");
    this.to = make("span");
    this.list = make("ul", { cls: "paths" });
    this.more = make("p", { cls: "note" });
    this.charts = ["Throughput", "Waiting in queues", "Packets lost"].map((title) => new Chart(title));
    this.cost = make("p", { cls: "cost" });
    this.body = make(
      "div",
      { cls: "body", id: `body-${id}` },
      make("div", { cls: "ends" }, this.from, this.to),
      this.list,
      this.more,
      make("div", { cls: "charts" }, ...this.charts.map((chart) => chart.element)),
      this.cost,
    );
    const amount = make("div", { cls: "bytes" }, this.progress, this.done);
    this.element = make("article", { cls: "card transfer" }, make("h3", {}, this.button), amount, this.why, this.body);
    this.button.addEventListener("click", () => this.open(!this.isOpen));
    this.open(isOpen);
  }

  open(isOpen) {
    this.isOpen = isOpen;
    give(this.button, "aria-expanded", isOpen);
    this.body.hidden = !isOpen;
    if (isOpen) this.recall().then(() => this.told && this.showBody(...this.told), () => {});
  }

  async recall() {
    const past = await fetched(`transfers/${this.id}`);
    this.bps = new Series(past.second, past.bps);
    for (const [id, figures] of Object.entries(past.paths)) {
      for (const name of ["bps", "queue_ms", "loss"]) this.row(id).series[name] = new Series(past.second, figures[name]);
    }
  }

  row(id) {
    if (!this.rows.has(id)) this.rows.set(id, new PathRow());
    return this.rows.get(id);
  }

  colour(id) {
    if (!this.colours.has(id)) {
      const taken = new Set(this.colours.values());
      const free = Array.from({ length: COLOURS }, (_, colour) => colour).find((colour) => !taken.has(colour));
      this.colours.set(id, free ?? 0);
    }
    return this.colours.get(id);
  }

  show(second, unix, process, told, host) {
    say(this.title, titleOf(process, told));
    say(this.since, `for ${span(Math.max(told.seconds, 0))}, process ${process.pid}`);
    say(this.rate, told.bps === undefined ? "not told" : rate(told.bps));
    const { total } = told;
    this.progress.hidden = !total;
    if (total) {
      this.progress.value = told.bytes / total;
      give(this.progress, "aria-label", "How far it is");
    }
    const left = total && told.bps && total > told.bytes ? ((total - told.bytes) * 8) / told.bps : undefined;
    const parts = [
      total ? `${Math.floor((100 * told.bytes) / total)} %, ${bytes(told.bytes)} of ${bytes(total)}` : bytes(told.bytes),
      left !== undefined && `${span(left)} left at this rate`,
    ];
    say(this.done, parts.filter(Boolean).join(", "));
    const [reason, meaning, kind] = whyOf(told);
    say(this.reason, reason);
    say(this.meaning, meaning);
    give(this.why, "class", `why ${kind}`);
    this.told = [second, process, told, host];
    if (this.isOpen) this.showBody(...this.told);
  }

  showBody(second, process, told, host) {
    const there = process.peer ?? (told.from ? shortKey(told.from) : "the other host");
    say(this.from, told.sends ? `this host, ${host}` : there);
    say(this.to, told.sends ? there : `this host, ${host}`);
    this.bps.push(second, told.bps);
    const shown = new Set(told.paths.map((path) => path.id));
    for (const [id, row] of this.rows) {
      if (shown.has(id)) continue;
      row.element.remove();
      this.rows.delete(id);
      this.colours.delete(id);
    }
    // The widest line is the fastest path of ten minutes: what is slow now is thin.
    const fastest = Math.max(1, ...told.paths.map((path) => Math.max(this.row(path.id).series.bps.max, path.bps ?? 0)));
    told.paths.forEach((path, place) => {
      const row = this.row(path.id);
      row.show(second, path, this.colour(path.id), fastest, told.sends);
      if (this.list.children[place] !== row.element) this.list.insertBefore(row.element, this.list.children[place] ?? null);
    });
    this.list.hidden = told.paths.length === 0;
    this.more.hidden = told.more_paths === 0;
    say(this.more, `Paths beside these: ${told.more_paths}. They carry ${rate(told.more_bps)}.`);
    this.showCharts(told);
    const cost = [];
    if (told.yielded_seconds != null) cost.push(`Time it made room for others: ${span(told.yielded_seconds)}.`);
    if (told.added_delay_ms != null) cost.push(`Delay it added to them, on average: ${millis(told.added_delay_ms)}.`);
    say(this.cost, cost.join(" "));
    this.cost.hidden = cost.length === 0;
  }

  showCharts(told) {
    const lines = (name) =>
      told.paths.map((path) => ({ values: this.row(path.id).series[name].values, cls: `line c${this.colour(path.id)}`, kind: "line" }));
    const most = (name) => Math.max(0, ...told.paths.map((path) => this.row(path.id).series[name].max));
    const newest = (name) => told.paths.map((path) => path[name]).filter((value) => value !== undefined);
    const [speed, queue, loss] = this.charts;
    const top = roundUp(Math.max(most("bps"), 1000));
    speed.show(lines("bps"), top, rate(top), told.bps === undefined ? "" : `${rate(told.bps)} now`);
    const queues = newest("queue_ms");
    const topQueue = roundUp(Math.max(most("queue_ms"), 10));
    const unmeasured = told.sends ? "not measured yet" : "the sender alone can measure this";
    queue.show(lines("queue_ms"), topQueue, millis(topQueue), queues.length ? `${millis(Math.max(...queues))} at most now` : "", unmeasured);
    const losses = newest("loss");
    const topLoss = roundUp(Math.max(most("loss"), 100));
    loss.show(lines("loss"), topLoss, share(topLoss), losses.length ? `${share(Math.max(...losses))} at most now` : "", unmeasured);
  }
}

const titleOf = (process, told) => {
  if (told.from) return `${told.name ?? "a stream"} from ${shortKey(told.from)}`;
  return process.peer ? `${process.verb} to ${process.peer}` : `${process.verb} by a ticket`;
};

// Why a transfer is not faster: the words, what they mean, and how bad it is.
const whyOf = (told) => {
  if (told.pause) {
    const [words, , meaning] = wordsFor(told.pause);
    return [`Why not faster: ${words}`, meaning, told.pause === "no_answer" ? "broken" : "held"];
  }
  if (told.total && told.bytes >= told.total) return ["All of it is there", "The end is being agreed.", ""];
  if (!told.sends) return ["Why not faster: the sender knows", "A receiver sees only what arrives. Look at the page of the sending host.", ""];
  return ["Why not faster: its paths carry no more", "Nothing but the lines limits it. Queues and losses below tell which.", ""];
};

// ---- All together

const uplinks = new Map();
const transfers = new Map();
const others = new Map();
let host = "";
let historyVersion;
let readsHistory = false;

const sync = (map, container, wanted, create) => {
  for (const [id, part] of map) {
    if (wanted.some(([id_]) => id_ === id)) continue;
    part.element.remove();
    map.delete(id);
  }
  wanted.forEach(([id, ...told], place) => {
    if (!map.has(id)) map.set(id, create(id, ...told));
    const { element } = map.get(id);
    if (container.children[place] !== element) container.insertBefore(element, container.children[place] ?? null);
  });
};

const note = (id, text) => {
  at(id).hidden = !text;
  say(at(id), text || "");
};

const showUplinks = ({ second, uplinks: told, unplaced_bps: unplaced }) => {
  sync(uplinks, at("uplinks"), told.map((uplink) => [uplink.name]), (name) => {
    const uplink = new Uplink(name);
    uplink.recall().catch(() => {});
    return uplink;
  });
  told.forEach((uplink) => uplinks.get(uplink.name).show(second, uplink));
  at("no-uplinks").hidden = told.length > 0;
  note("unplaced", unplaced && `Paths whose interface is not known carry ${rate(unplaced)}. They count as others' above.`);
};

const showTransfers = ({ second, unix, processes, more_transfers: more }) => {
  const all = processes.flatMap((process) => process.transfers.map((told) => [told.id, process, told]));
  // What this host sends comes first: of it the reasons are known. Then the oldest.
  all.sort(([id, process, told], [id_, process_, told_]) => told_.sends - told.sends || process.since - process_.since || id - id_);
  sync(transfers, at("cards"), all, (id) => new Transfer(id, transfers.size < OPEN_AT_FIRST));
  for (const [id, process, told] of all) transfers.get(id).show(second, unix, process, told, host);
  at("no-transfers").hidden = all.length > 0;
  note("more-transfers", more && `Transfers beside these: ${more}.`);
  // What runs without a transfer, or does something else too.
  const rest = processes.filter((process) => process.transfers.length === 0 || process.forwarded || process.relayed || process.away);
  sync(others, at("others"), rest.map((process) => [process.id]), () => ({ element: make("li", {}, make("bdi")) }));
  for (const process of rest) say(others.get(process.id).element.firstChild, otherText(process, unix));
  showHeadline(all, processes.length);
};

// Processes of which a command tells more.
const TELLS_MORE = new Map([["registry", "byway registry list tells its relays and words"]]);

const otherText = (process, unix) => {
  if (process.problem) return `${process.id}: ${process.problem}`;
  const { forwarded, relayed, away } = process;
  const parts = [`${process.verb}${process.peer ? ` ${process.peer}` : ""}, for ${span(unix - process.since)}, process ${process.pid}`];
  if (away) parts.push(`the peer does not answer: ${away}`);
  if (forwarded) parts.push(`connections: ${forwarded.open}; ${bytes(forwarded.sent_bytes)} sent, ${bytes(forwarded.received_bytes)} received`);
  if (relayed) parts.push(`relayed ${bytes(relayed.forwarded_bytes + relayed.returned_bytes)}, ${bytes(relayed.today_bytes)} today; senders: ${relayed.grants}`);
  const isAtRest = process.transfers.length === 0 && !forwarded && !relayed && !away;
  if (isAtRest) parts.push(TELLS_MORE.get(process.verb) ?? "no transfer now");
  if (process.listen) parts.push(`listening on ${process.listen.join(", ")}`);
  return parts.join(" · ");
};

const showHeadline = (all, processes) => {
  const sum = all.reduce((sum, [, , told]) => sum + (told.bps ?? 0), 0);
  const held = all.filter(([, , told]) => told.pause);
  const named = held.slice(0, 2).map(([, process, told]) => {
    return `${titleOf(process, told)} (${wordsFor(told.pause)[0]})`;
  });
  const rest = held.length > named.length ? `, and ${held.length - named.length} more` : "";
  const [only] = all.length === 1 ? all.map(([, , told]) => whyOf(told)[0]) : [];
  const reason = only ? ` ${only}.` : named.length ? ` Held back: ${named.join(", ")}${rest}.` : "";
  const count = all.length === 1 ? "1 transfer" : `${all.length} transfers`;
  const running = all.length ? `${count}, ${rate(sum)}${all.length > 1 ? " in all" : ""}.${reason}` : "byway runs here, and moves nothing now.";
  say(at("headline"), processes === 0 ? "Nothing of byway runs here now." : running);
  // What a screen reader says: changes of the reasons, and not each second's rates.
  say(at("said"), `${all.length ? count : "No transfer"}.${reason}`);
};

// ---- History

const showHistory = async () => {
  const past = await fetched("history.json");
  historyVersion = past.version;
  say(at("history-sum"), past.transfers ? `${bytes(past.bytes)}; transfers: ${past.transfers}, failed: ${past.failed}` : "");
  const parts = [];
  if (past.problem) parts.push(make("p", { cls: "note", text: `The history cannot be read: ${past.problem}` }));
  else if (past.transfers === 0) parts.push(make("p", { cls: "note", text: "No transfer has ended in 30 days." }));
  else parts.push(daysOf(past), ...tableOf(past));
  at("history").replaceChildren(...parts);
};

const daysOf = (past) => {
  const days = new Map();
  const day = new Date();
  day.setHours(12, 0, 0, 0);
  for (let back = 29; back >= 0; back -= 1) {
    const then = new Date(day);
    then.setDate(day.getDate() - back);
    days.set(then.toDateString(), { then, bytes: 0, transfers: 0, failed: 0 });
  }
  for (const [quarter, count, transfers, failed] of past.quarters) {
    // The oldest hours belong to a day that is not shown whole.
    const found = days.get(new Date(quarter * 900_000).toDateString());
    if (!found) continue;
    found.bytes += count;
    found.transfers += transfers;
    found.failed += failed;
  }
  const most = Math.max(1, ...[...days.values()].map((found) => found.bytes));
  const bars = [...days.values()].map(({ then, bytes: count, transfers, failed }) => {
    const fill = make("div", { cls: "fill" });
    fill.style.height = count ? `${Math.max(3, (100 * count) / most).toFixed(0)}%` : "0";
    const title = `${then.toLocaleDateString()}: ${bytes(count)}, transfers: ${transfers}, failed: ${failed}`;
    return make("li", { title }, ...(failed ? [make("div", { cls: "bad" })] : []), fill);
  });
  const label = `Bytes by day, ${bytes(most)} at most on one day. Red marks days with a failed transfer.`;
  const list = make("ol", { cls: "days", role: "img", "aria-label": label }, ...bars);
  const times = make("div", { cls: "times" }, make("span", { text: "30 days ago" }), make("span", { text: label }), make("span", { text: "today" }));
  return make("div", {}, list, times);
};

const tableOf = (past) => {
  const heads = [["when"], ["what"], ["bytes", "number"], ["took", "number"], ["rate", "number"], ["result"]];
  const head = make("tr", {}, ...heads.map(([text, cls]) => make("th", { text, cls, scope: "col" })));
  const body = make("tbody");
  const add = (entries) => {
    for (const entry of entries) {
      const cells = [
        [new Date(entry.at * 1000).toLocaleString([], { dateStyle: "short", timeStyle: "short" })],
        [[entry.verb, entry.name, entry.peer && shortKey(entry.peer)].filter(Boolean).join(" ")],
        [entry.bytes === undefined ? "" : bytes(entry.bytes), "number"],
        [entry.seconds === undefined ? "" : span(entry.seconds), "number"],
        [entry.goodput_bps === undefined ? "" : rate(entry.goodput_bps), "number"],
        [entry.failed ? `failed: ${entry.error ?? "not complete"}` : (entry.error ?? "complete"), entry.failed ? "failed" : undefined],
      ];
      body.append(make("tr", {}, ...cells.map(([text, cls]) => make("td", { text, cls }))));
    }
  };
  add(past.newest.slice(0, LISTED_AT_FIRST));
  const table = make("table", {}, make("thead", {}, head), body);
  const scroll = make("div", { cls: "scroll", tabindex: "0", role: "region", "aria-label": "Transfers that ended" }, table);
  const rest = past.newest.slice(LISTED_AT_FIRST);
  if (rest.length === 0) return [scroll];
  const more = make("button", { cls: "more", type: "button", text: `Show ${rest.length} more` });
  more.addEventListener("click", () => {
    add(rest);
    more.remove();
    scroll.focus();
  });
  return [scroll, more];
};

// ---- The stream

let stream;

const state = (cls, text) => {
  give(at("live"), "class", `live ${cls}`);
  say(at("live-text"), text);
};

const show = (frame) => {
  showUplinks(frame);
  showTransfers(frame);
  state("on", frame.every > 1.05 ? `live, every ${span(frame.every)}` : "live");
  if (frame.history !== historyVersion && !readsHistory) {
    readsHistory = true;
    const end = () => (readsHistory = false);
    showHistory().then(end, end);
  }
};

// A figure that this page cannot show stops no later one, and is not passed over in silence.
const receive = (event) => {
  try {
    show(JSON.parse(event.data));
  } catch (error) {
    state("lost", "what came cannot be shown: the figures are old");
    console.error(error);
  }
};

const connect = () => {
  stream?.close();
  stream = new EventSource("events");
  stream.addEventListener("message", receive);
  stream.addEventListener("displaced", () => {
    stream.close();
    state("lost", "too many pages show this: reload to see it here");
  });
  stream.addEventListener("error", () => {
    const isOver = stream.readyState === EventSource.CLOSED;
    state("lost", isOver ? "over: start `byway view` again" : "connection lost: does `byway view` still run?");
  });
};

document.addEventListener("visibilitychange", () => {
  if (document.hidden) {
    stream?.close();
    state("", "paused while hidden");
    return;
  }
  for (const uplink of uplinks.values()) uplink.recall().catch(() => {});
  for (const transfer of transfers.values()) if (transfer.isOpen) transfer.recall().catch(() => {});
  connect();
});

const words = await fetched("words.json");
reasons = words.reasons;
host = words.host;
say(at("host"), `on ${host}`);
document.title = `byway on ${host}`;
connect();
