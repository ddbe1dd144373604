// The desk: results from people who have a score sheet, a spreadsheet, or a phone at the table. Talks to /v1 only.
// What has no page in it is exported, and tested against the server's own code.

// -- names and ids, as shared/imports/text.py and shared/ids.py have them -----------------------------------------
const LETTERS = {
  "þ": "th", "ð": "d", "ø": "o", "ł": "l", "æ": "ae", "œ": "oe", "đ": "d", "ħ": "h", "ı": "i", "ŋ": "n", "ŧ": "t",
  "ĸ": "k", "ƒ": "f", "ə": "e", "ß": "ss", "ẞ": "ss", "’": "'", "‘": "'", "ʼ": "'", "`": "'", "´": "'",
  "‐": "-", "‑": "-", "–": "-", "—": "-", "−": "-", "ς": "σ",
};

/** A text as the search compares it: no case, no accents, single blanks. */
export function searchKey(text) {
  const bare = text.normalize("NFKC").toLowerCase().normalize("NFKD").replace(/\p{M}/gu, "");
  const plain = [...bare].map((letter) => LETTERS[letter] ?? letter).join("");
  return plain.normalize("NFC").toLowerCase().split(/[\s\x1c-\x1f\x85]+/u).filter(Boolean).join(" ");
}

const RESERVED = new Set(["v1", "desk", "embed", "assets", "en", "de", "fr", "it"]);

/** An id made from a name, or "". */
export function idFrom(text) {
  const made = searchKey(text).replace(/[^a-z0-9._]+/g, "-").replace(/^[-._]+|[-._]+$/g, "").slice(0, 64).replace(/[-._]+$/, "");
  return RESERVED.has(made) ? `${made}-1` : made;
}

/** Players whose id or a word of whose name begins with every word that was typed; exact ones first. */
export function search(players, typed, most = 8) {
  const key = searchKey(typed);
  const words = key.split(" ").filter(Boolean);
  if (!words.length) return [];
  const found = players.filter((player) => words.every((word) => player.parts.some((part) => part.startsWith(word))));
  return found.sort((a, b) => (b.key === key) - (a.key === key) || (b.player === key) - (a.player === key)).slice(0, most);
}

/** A player of the list, made ready for the search. */
export function searchable({ player, name }) {
  const key = searchKey(name);
  return { player, name, key, parts: [...key.split(/[\s-]+/u), key, player] };
}

// -- files --------------------------------------------------------------------------------------------------------
/** A cell as our exports write it: nothing a spreadsheet would run. */
export function neutralise(cell) {
  return /^'*[=+\-@\t\r]/.test(cell) ? `'${cell}` : cell;
}

/** Headings and rows as a CSV file. */
export function toCsv(headings, rows) {
  const quoted = (cell) => (/[",\r\n;\t]|^\s|\s$/.test(cell) ? `"${cell.replaceAll('"', '""')}"` : cell);
  return `\ufeff${[headings, ...rows].map((row) => row.map((cell) => quoted(neutralise(cell ?? ""))).join(",")).join("\r\n")}\r\n`;
}

// -- times --------------------------------------------------------------------------------------------------------
function offset(at, zone) {
  const parts = new Intl.DateTimeFormat("en-GB", {
    timeZone: zone, hourCycle: "h23", year: "numeric", month: "2-digit", day: "2-digit", hour: "2-digit", minute: "2-digit", second: "2-digit",
  }).formatToParts(at);
  const value = (type) => Number(parts.find((part) => part.type === type).value);
  return Date.UTC(value("year"), value("month") - 1, value("day"), value("hour"), value("minute"), value("second")) - Math.floor(at / 1000) * 1000;
}

/** The instants (milliseconds) at which clocks there show this: usually one, none or two when the clocks are changed. */
export function instants(day, time, zone) {
  const local = Date.parse(`${day}T${time}:00Z`);
  if (Number.isNaN(local)) return [];
  const offsets = new Set([offset(local - 864e5, zone), offset(local + 864e5, zone)]);
  return [...offsets].map((shift) => local - shift).filter((at) => at + offset(at, zone) === local).sort((a, b) => a - b);
}

/** Day and time that clocks there show at an instant. */
export function local(at, zone) {
  const text = new Date(at + offset(at, zone)).toISOString();
  return { day: text.slice(0, 10), time: text.slice(11, 16) };
}

/** The day after. */
export function dayAfter(day) {
  return new Date(Date.parse(`${day}T00:00:00Z`) + 864e5).toISOString().slice(0, 10);
}

if (typeof document !== "undefined" && document.getElementById("desk")) desk(document.getElementById("desk"));

// -- the page -----------------------------------------------------------------------------------------------------
function desk(root) {
  const words = JSON.parse(root.dataset.words);
  const language = document.documentElement.lang;
  const $ = (selector, within = root) => within.querySelector(selector);
  const $$ = (selector, within = root) => [...within.querySelectorAll(selector)];
  const say = (key, values = {}) => (words[key] ?? key).replace(/\{(\w+)\}/g, (_, name) => values[name] ?? "");
  const state = { api: "", key: null, store: sessionStorage, club: "", pools: [], pool: null, settings: {}, roster: [] };

  /** An element: el("p", {class: "when"}, "text", child). */
  function el(tag, attributes = {}, ...children) {
    const made = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) {
      if (name === "on") for (const [event, listener] of Object.entries(value)) made.addEventListener(event, listener);
      else if (value === true) made.setAttribute(name, "");
      else if (value !== false && value !== null && value !== undefined) made.setAttribute(name, value);
    }
    made.append(...children.filter((child) => child !== null && child !== undefined && child !== false));
    return made;
  }

  // -- the API
  class Failure extends Error {
    constructor(status, problem, retryAfter) {
      super(problem?.detail ?? "");
      this.retryAfter = retryAfter === null || retryAfter === undefined ? null : Number(retryAfter);
      this.status = status;
      this.problem = problem ?? {};
    }
  }
  async function call(method, path, { json, body, query, headers } = {}) {
    const given = Object.entries(query ?? {}).filter(([, value]) => value !== null && value !== undefined && value !== "");
    const address = `${state.api}${path}${given.length ? `?${new URLSearchParams(given)}` : ""}`;
    const sent = { Authorization: `Bearer ${state.key}`, ...headers };
    if (json !== undefined) sent["Content-Type"] = "application/json";
    let reply;
    try {
      reply = await fetch(address, { method, headers: sent, body: json !== undefined ? JSON.stringify(json) : body, cache: "no-store" });
    } catch {
      throw new Failure(0);
    }
    const answer = await reply.json().catch(() => null);
    if (!reply.ok) throw new Failure(reply.status, answer, reply.headers.get("Retry-After"));
    return { status: reply.status, body: answer };
  }
  const PATIENCE = 20;
  /** What may be asked any number of times, until the service is less busy. */
  async function patiently(work) {
    for (let asked = 1; ; asked += 1) {
      try {
        return await work();
      } catch (failure) {
        if (![429, 503].includes(failure.status) || asked === PATIENCE) throw failure;
        await pause(1000 * Math.min(failure.retryAfter ?? 3, 10));
      }
    }
  }
  function reason(failure) {
    if (!(failure instanceof Failure)) return say("failed");
    if (failure.status === 0) return say("offline");
    if (failure.status === 401) return say("key-unknown");
    if (failure.status === 429 || failure.status === 503) return say("busy");
    return translated(failure.problem.code, failure.problem.detail) || say("failed");
  }
  /** Refusals that name a player, a number or the end of a ban: what the server says of it is shown too. */
  const DETAILED = new Set(["banned", "minimum-regular-games", "not-registered", "rank-me-off"]);
  function translated(code, message) {
    const told = words[`e:${code}`];
    if (!told || !message || !DETAILED.has(code)) return told ?? message;
    return language === "en" ? message : `${told} (${message})`;
  }
  function alarm(text) {
    $("#alert").replaceChildren(text ? el("p", { class: "note" }, text) : "");
  }

  // -- who is it
  async function enter(key, store) {
    await ready;
    state.key = key;
    const me = (await call("GET", "/v1/key")).body;
    Object.assign(state, { store, club: me.club });
    store.setItem("desk.key", key);
    $("#club").textContent = me.name;
    await Promise.all([loadPools(), loadRoster()]);
    $("#enter").hidden = true;
    $("#inside").hidden = false;
    $("#enter").reset();
    route();
  }
  async function loadPools() {
    const list = await fetch("/site.json", { cache: "no-cache" }).then((reply) => reply.json()).catch(() => ({ pools: [] }));
    const found = await Promise.all(list.pools.map(({ pool }) => call("GET", `/v1/pools/${pool}`).then(({ body }) => body).catch(() => null)));
    state.pools = found.filter((pool) => pool && (pool.clubs === null || pool.clubs.includes(state.club) || state.club === "admin"));
    $("#pool").replaceChildren(...state.pools.map((pool) => el("option", { value: pool.pool }, pool.name)));
    const last = state.store.getItem("desk.pool");
    if (state.pools.some((pool) => pool.pool === last)) $("#pool").value = last;
    if (!state.pools.length) alarm(say("no-pools"));
    choosePool();
  }
  async function loadRoster() {
    const players = [];
    let cursor;
    do {
      const page = (await call("GET", `/v1/clubs/${state.club}/players`, { query: { cursor } })).body;
      players.push(...page.players);
      cursor = page.next;
    } while (cursor);
    state.roster = players.map(searchable);
  }
  function nameOf(player) {
    return state.roster.find((known) => known.player === player)?.name ?? player;
  }
  function choosePool() {
    state.pool = state.pools.find((pool) => pool.pool === $("#pool").value) ?? null;
    state.settings = state.pool ? state.pool.rules.at(-1) : {};
    if (!state.pool) return;
    state.store.setItem("desk.pool", state.pool.pool);
    prepareGame();
    prepareLive();
    prepareMany();
  }
  function leave() {
    for (const store of [sessionStorage, localStorage]) for (const name of Object.keys(store)) if (name.startsWith("desk.")) store.removeItem(name);
    location.reload();
  }

  // -- tabs
  const tabs = ["game", "live", "many", "inbox"];
  function route() {
    const wanted = tabs.includes(location.hash.slice(1)) ? location.hash.slice(1) : "game";
    for (const name of tabs) {
      $(`#${name}`).hidden = name !== wanted;
      $(`#tabs a[href="#${name}"]`).toggleAttribute("aria-current", name === wanted);
      if (name === wanted) $(`#tabs a[href="#${name}"]`).setAttribute("aria-current", "page");
    }
    if (wanted === "inbox" && state.key) loadInbox();
  }

  // -- a player, found as one types
  let boxes = 0;
  class Who {
    constructor(box, changed) {
      this.box = box;
      this.input = $("input", box);
      this.list = $("ul", box);
      this.changed = changed;
      this.chosen = null;
      this.list.id = `who-${(boxes += 1)}`;
      this.input.setAttribute("aria-controls", this.list.id);
      this.input.addEventListener("input", () => { this.take(null); this.show(); });
      this.input.addEventListener("keydown", (event) => this.key(event));
      this.input.addEventListener("blur", () => this.settle());
      this.list.addEventListener("mousedown", (event) => event.preventDefault());
      this.list.addEventListener("click", (event) => {
        const option = event.target.closest("li");
        if (option) this.choose(Number(option.dataset.index));
      });
      box.who = this;
    }
    take(player) {
      this.chosen = player;
      this.box.classList.toggle("ok", Boolean(player));
      if (player) this.input.removeAttribute("aria-invalid");
      this.changed?.();
    }
    set(player) {
      this.input.value = player ? player.name : "";
      this.take(player);
    }
    show() {
      const typed = this.input.value.trim();
      this.options = search(state.roster, typed);
      const known = this.options.some((option) => option.key === searchKey(typed) || option.player === searchKey(typed));
      if (typed.length > 1 && !known && /[\p{L}\p{N}]/u.test(typed)) this.options.push({ name: typed.replace(/\s+/gu, " "), register: true });
      this.active = this.options.length && !this.options[0].register ? 0 : -1;
      this.list.replaceChildren(...this.options.map((option, index) => el(
        "li", { role: "option", id: `${this.list.id}-${index}`, "data-index": index, "aria-selected": index === this.active ? "true" : "false" },
        option.register ? say("register", { name: option.name }) : el("span", { dir: "auto" }, option.name),
        option.register ? null : el("small", {}, option.player),
      )));
      this.list.hidden = !this.options.length;
      this.input.setAttribute("aria-expanded", String(!this.list.hidden));
      this.mark();
    }
    mark() {
      [...this.list.children].forEach((option, index) => option.setAttribute("aria-selected", index === this.active ? "true" : "false"));
      if (this.active >= 0 && !this.list.hidden) {
        this.input.setAttribute("aria-activedescendant", `${this.list.id}-${this.active}`);
        this.list.children[this.active].scrollIntoView({ block: "nearest" });
      } else this.input.removeAttribute("aria-activedescendant");
    }
    close() {
      this.list.hidden = true;
      this.input.setAttribute("aria-expanded", "false");
      this.input.removeAttribute("aria-activedescendant");
    }
    choose(index) {
      this.set(this.options[index]);
      this.close();
    }
    key(event) {
      const open = !this.list.hidden;
      if (event.key === "ArrowDown" || event.key === "ArrowUp") {
        event.preventDefault();
        if (!open) return this.show();
        const step = event.key === "ArrowDown" ? 1 : -1;
        this.active = (this.active + step + this.options.length) % this.options.length;
        this.mark();
      } else if (event.key === "Enter" && open && this.active >= 0) {
        event.preventDefault();
        this.choose(this.active);
      } else if (event.key === "Escape" && open) {
        event.stopPropagation();
        this.close();
      }
      return undefined;
    }
    /** Leaving the field: what can only mean one player is that player. */
    settle() {
      const typed = searchKey(this.input.value);
      if (!this.chosen && typed) {
        const byId = state.roster.filter((player) => player.player === typed);
        const byName = state.roster.filter((player) => player.key === typed);
        const found = search(state.roster, typed, 2);
        const certain = byName.length === 1 ? byName : byId.length === 1 && !byName.length ? byId : byName.length ? [] : found;
        if (certain.length === 1) this.set(certain[0]);
      }
      this.close();
    }
  }

  // -- a score sheet: line-up and result of one system
  class Sheet {
    constructor(place, { lineUp = true, result = true, entry = false, seats = null, times = null, changed = () => {} }) {
      const holder = el("div"); // its listeners go with it when another sheet takes its place
      place.replaceChildren(holder);
      Object.assign(this, { holder, system: state.pool.system, changed, seats, times, registered: new Map() });
      const parts = $(`#t-${this.system}`).content.cloneNode(true);
      if (!lineUp) $("[data-lineup]", parts).remove();
      if (!result) $("[data-result]", parts).remove();
      holder.append(parts);
      this.prefix = `s${(boxes += 1)}-`;
      for (const radio of $$("input[type=radio]", holder)) radio.name = this.prefix + radio.name;
      for (const box of $$("[data-who]", holder)) new Who(box, () => this.refresh());
      holder.addEventListener("click", (event) => {
        const adds = event.target.closest("[data-add]");
        const removes = event.target.closest("[data-remove]");
        if (adds) this.add(adds.dataset.add);
        if (removes) this.remove(removes);
      });
      holder.addEventListener("input", () => this.refresh());
      holder.addEventListener("change", () => this.refresh());
      if (this.system === "jass" && result) this.prepareJass();
      if (this.system === "bridier" && entry && lineUp) $("[data-entry]", holder).hidden = false;
      this.refresh();
    }
    radio(name) {
      return $(`input[name="${this.prefix}${name}"]:checked`, this.holder)?.value;
    }
    who() {
      return $$("[data-lineup] [data-who]", this.holder).map((box) => box.who);
    }
    /** The players in seat order; null where nobody is chosen yet. */
    players() {
      return this.seats ?? this.who().map((who) => who.chosen);
    }
    add(what) {
      if (what === "players") {
        const holder = $("[data-players]", this.holder);
        const part = $("#t-player").content.cloneNode(true);
        const number = holder.children.length;
        const box = $("[data-who]", part);
        box.dataset.field = `players[${number}]`;
        $("label", box).firstChild.textContent = say("player-n", { n: number + 1 });
        $("ul", box).setAttribute("aria-label", say("player-n", { n: number + 1 }));
        box.append(el("button", { type: "button", class: "quiet", "data-remove": true }, say("remove")));
        holder.append(part);
        new Who(box, () => this.refresh());
        this.refresh();
        $("input", box).focus();
        return;
      }
      const part = $(`#t-${what}`).content.cloneNode(true);
      const row = part.firstElementChild;
      row.dataset.row = what;
      $(`[data-list="${what}"]`, this.holder).append(part);
      for (const box of $$("[data-who]", row)) new Who(box, () => this.refresh());
      this.refresh();
      $("select", row).focus();
    }
    remove(button) {
      const gone = button.closest("[data-row], [data-who]");
      const next = gone.parentElement.parentElement.querySelector("[data-add]");
      gone.remove();
      $$("[data-players] [data-who]", this.holder).forEach((box, number) => {
        box.dataset.field = `players[${number}]`;
        $("label", box).firstChild.textContent = say("player-n", { n: number + 1 });
      });
      this.refresh();
      next?.focus();
    }
    prepareJass() {
      const rules = state.settings;
      const points = rules.measure === "points";
      for (const part of $$("[data-measure]", this.holder)) part.hidden = (part.dataset.measure === "points") !== points;
      const schneider = rules.schneider === undefined ? 2 : rules.schneider;
      const konter = rules.kontermatsch === undefined ? 2 : rules.kontermatsch;
      const kinds = [["berg", rules.berg === false ? 0 : 1, 1], ["sieg", 2, 2], ["matsch", 1, 99], ["schneider", schneider ?? 0, schneider ?? 0], ["kontermatsch", konter, 99 * konter]];
      this.counts = [{}, {}];
      const body = $(".striche tbody", this.holder);
      for (const [kind, step, most] of kinds.filter(([, size]) => size)) {
        body.append(el("tr", {}, el("th", { scope: "row" }, say(kind)), ...[0, 1].map((side) => {
          this.counts[side][kind] = 0;
          const shown = el("output", {}, "0");
          const move = (by) => () => {
            this.counts[side][kind] = Math.min(most, Math.max(0, this.counts[side][kind] + by));
            shown.textContent = this.counts[side][kind];
            this.refresh();
          };
          const names = { name: say(kind), team: say("team-short", { n: side + 1 }) };
          const button = (sign, by, word) => el("button", { type: "button", "aria-label": say(word, names), on: { click: move(by) } }, sign);
          return el("td", { "data-field": `striche[${side}].${kind}` }, el("div", { class: "step" }, button("−", -step, "minus"), shown, button("+", step, "plus")));
        })));
      }
      $(`input[name="${this.prefix}how"]`, this.holder).checked = true;
      $(`input[name="${this.prefix}winner"]`, this.holder).checked = true;
    }
    /** Bring what depends on other fields in line. */
    refresh() {
      const names = this.players();
      const seated = names.filter(Boolean);
      for (const select of $$("[data-seat]", this.holder)) {
        const before = select.value;
        const options = seated.map((player) => el("option", { value: player.player ?? player.name }, player.name));
        if (select.hasAttribute("data-open")) options.unshift(el("option", { value: "" }, say("nobody-said")));
        select.replaceChildren(...options);
        if ([...select.options].some((option) => option.value === before)) select.value = before;
        else if (select.dataset.seat === "loser" && select.options.length > 1) select.selectedIndex = 1;
      }
      if (this.system === "jass" && this.counts) {
        const by = this.radio("how");
        for (const part of $$("[data-how]", this.holder)) part.hidden = part.dataset.how !== by;
        this.counts.forEach((counts, side) => { $(`[data-total="${side}"]`, this.holder).textContent = Object.values(counts).reduce((a, b) => a + b, 0); });
      }
      if (this.system === "bridier") {
        const several = names.length > 2;
        for (const part of $$("[data-several]", this.holder)) part.hidden = !several;
        const duel = $("[data-duel]", this.holder);
        if (duel) {
          duel.hidden = several;
          $$("label span", duel).forEach((text, index) => {
            const player = [names[0], null, names[1]][index];
            if (index !== 1) text.textContent = player ? player.name : say("player-n", { n: index ? 2 : 1 });
          });
        }
        const allies = $("[data-alliances]", this.holder);
        if (allies) {
          const before = $$("select", allies).map((select) => select.value);
          allies.replaceChildren(...(several ? names : []).map((player, index) => {
            const select = el("select", {}, el("option", { value: "" }, say("no-ally")), ...["A", "B", "C", "D"].map((letter) => el("option", {}, letter)));
            select.value = before[index] ?? "";
            return el("label", {}, player?.name ?? say("player-n", { n: index + 1 }), select);
          }));
        }
      }
      this.changed();
    }
    id(player) {
      return player.register ? this.registered.get(player.name) ?? player.name : player.player;
    }
    idOf(value) {
      return this.registered.get(value) ?? value;
    }
    /** What is sent as line_up; errors as [element, message]. */
    lineUp(errors = []) {
      const seats = this.who();
      const seen = new Map();
      for (const who of seats) {
        const id = who.chosen && (who.chosen.player ?? who.chosen.name);
        if (!who.chosen) errors.push([who.input, say(who.input.value.trim() ? "choose" : "e:missing-player")]);
        else if (seen.has(id)) errors.push([who.input, say("twice")]);
        seen.set(id, who);
      }
      const ids = this.players().map((player) => player && this.id(player));
      if (this.system !== "bridier") return { teams: [ids.slice(0, 2), ids.slice(2, 4)] };
      const found = { players: ids };
      const alliances = this.alliances(ids);
      if (alliances.length) found.alliances = alliances;
      const limits = $$("[data-limit]", this.holder).filter((input) => input.value.trim());
      if (limits.length) {
        found.entry = {};
        for (const input of limits) found.entry[input.dataset.limit] = this.number(input, errors);
      }
      return found;
    }
    alliances(ids) {
      const groups = new Map();
      $$("[data-alliances] select", this.holder).forEach((select, index) => {
        if (select.value) groups.set(select.value, [...(groups.get(select.value) ?? []), ids[index]]);
      });
      return [...groups.values()].filter((group) => group.length > 1);
    }
    number(input, errors) {
      const text = input.value.trim();
      if (/^\d{1,9}$/.test(text)) return Number(text);
      errors.push([input, say("number")]);
      return null;
    }
    rows(kind, read) {
      return $$(`[data-row="${kind}"]`, this.holder).map(read);
    }
    seat(row, name) {
      return this.idOf($(`[data-seat="${name}"]`, row).value);
    }
    at(row, name, errors) {
      const input = $(`[data-at="${name}"]`, row);
      return input.value && this.times ? this.times(input, errors) : undefined;
    }
    /** What is sent as result; errors as [element, message]. */
    result(errors = []) {
      const found = this.seats ? this.fixed() : this.lineUp(errors);
      if (this.system === "jass") this.jass(found, errors);
      if (this.system === "spades") this.spades(found, errors);
      if (this.system === "bridier") this.bridier(found, errors);
      return found;
    }
    fixed() {
      const ids = this.seats.map((player) => player.player);
      return this.system === "bridier" ? { players: ids } : { teams: [ids.slice(0, 2), ids.slice(2, 4)] };
    }
    jass(found, errors) {
      if (state.settings.measure === "points") found.points = $$("[data-points]", this.holder).map((input) => this.number(input, errors));
      else if (this.radio("how") === "total") {
        found.striche = $$("[data-score]", this.holder).map((input) => this.number(input, errors));
        if (this.radio("winner")) found.winner = this.radio("winner");
      } else {
        found.striche = this.counts.map((counts) => ({ ...counts }));
        if (this.counts.every((counts) => Object.values(counts).every((count) => !count))) errors.push([$(".step button", this.holder), say("result-missing")]);
      }
    }
    spades(found, errors) {
      const outcome = this.radio("outcome");
      const quits = this.rows("quits", (row) => {
        const quit = { player: this.seat(row, "player") };
        const at = this.at(row, "at", errors), back = this.at(row, "back_at", errors);
        if (at) quit.at = at;
        if (back) quit.back_at = back;
        return quit;
      });
      if (outcome) found.outcome = outcome;
      else if (!quits.length && !this.seats) errors.push([$("[data-choice=outcome] input", this.holder), say("result-missing")]);
      if (quits.length) found.quits = quits;
      const nils = this.rows("nils", (row) => {
        const set = Boolean($("[data-set]", row).value);
        return { bidder: this.seat(row, "bidder"), set, set_by: set ? this.seat(row, "set_by") || null : null };
      });
      if (nils.length) found.nils = nils;
      const substitutes = this.rows("substitutes", (row) => {
        if ($("[data-robot]", row).checked) return { for: this.seat(row, "for"), robot: true };
        const { who } = $("[data-who]", row);
        if (!who.chosen) errors.push([who.input, say("choose")]);
        return { for: this.seat(row, "for"), player: who.chosen && this.id(who.chosen) };
      });
      if (substitutes.length) found.substitutes = substitutes;
    }
    bridier(found, errors) {
      delete found.entry;
      const ruins = this.rows("ruins", (row) => ({ player: this.seat(row, "player"), by: this.seat(row, "by") || null, at: this.at(row, "at", errors) }));
      if (found.players.length === 2) {
        const outcome = this.radio("outcome");
        if (outcome === "draw") found.draw = true;
        else if (outcome) found.winner = found.players[Number(outcome)];
        else errors.push([$("[data-choice=outcome] input", this.holder), say("result-missing")]);
      } else {
        found.defeats = this.rows("defeats", (row) => ({ winner: this.seat(row, "winner"), loser: this.seat(row, "loser"), at: this.at(row, "at", errors) }));
        if ($("[data-draw]", this.holder).checked) { found.draw = true; if (!found.defeats.length) delete found.defeats; }
        else if (!found.defeats.length && !ruins.length) errors.push([$('[data-add="defeats"]', this.holder), say("result-missing")]);
      }
      if (ruins.length) found.ruins = ruins;
    }
    /** Everybody who is new, with an id that nobody has. */
    async register() {
      const fresh = [...$$("[data-who]", this.holder)].map((box) => box.who.chosen).filter((player) => player?.register);
      const made = [];
      for (const { name } of fresh) {
        if (!this.registered.has(name)) this.registered.set(name, await freeId(name, [...this.registered.values()]));
        if (!made.some((player) => player.name === name)) made.push({ id: this.registered.get(name), name });
      }
      return made;
    }
    clearResult() {
      for (const row of $$("[data-row]", this.holder)) row.remove();
      for (const radio of $$("[data-result] input[type=radio]", this.holder)) if (!radio.name.endsWith("-how")) radio.checked = radio.value === "";
      for (const input of $$("[data-result] input:not([type=radio])", this.holder)) { input.value = ""; input.checked = false; }
      for (const shown of $$(".step output", this.holder)) shown.textContent = "0";
      for (const counts of this.counts ?? []) for (const kind of Object.keys(counts)) counts[kind] = 0;
      this.refresh();
    }
  }
  async function freeId(name, mine) {
    const base = idFrom(name) || `player-${Date.now().toString(36)}`;
    for (let number = 1; number < 20; number += 1) {
      const id = number === 1 ? base : `${base.slice(0, 60)}-${number}`;
      if (mine.includes(id) || state.roster.some((player) => player.player === id)) continue;
      try {
        await call("GET", `/v1/players/${id}`);
      } catch (failure) {
        if (failure.status === 404) return id;
        throw failure;
      }
    }
    return `${base.slice(0, 50)}-${Date.now().toString(36)}`;
  }

  // -- errors in a form
  function clearErrors(form) {
    $("[data-errors]", form).replaceChildren();
    for (const input of $$("[aria-invalid]", form)) input.removeAttribute("aria-invalid");
  }
  function showErrors(form, errors) {
    const list = el("ul", {}, ...errors.map(([input, message]) => {
      if (!input) return el("li", {}, message);
      if (input.matches("input, select")) input.setAttribute("aria-invalid", "true");
      return el("li", {}, el("button", { type: "button", class: "link", on: { click: () => input.focus() } }, message));
    }));
    const box = $("[data-errors]", form);
    box.replaceChildren(el("p", {}, say("wrong")), list);
    box.focus();
    box.scrollIntoView({ block: "nearest" });
  }
  function showFailure(form, failure) {
    if (!(failure instanceof Failure)) throw failure;
    const errors = (failure.problem.errors ?? []).map(({ field, code, message }) => {
      const path = field.replace(/^(result|line_up)\.?/, "");
      const part = $$("[data-field]", form).find((candidate) => candidate.dataset.field === path);
      const input = part?.matches("input, select") ? part : part?.querySelector("input, button");
      return [input ?? null, translated(code, message)];
    });
    if (failure.problem.code === "possible-duplicate") {
      form.elements.distinct?.closest("details").setAttribute("open", "");
      errors.push([form.elements.distinct ?? null, reason(failure)]);
    }
    showErrors(form, errors.length ? errors : [[null, reason(failure)]]);
  }
  async function whileBusy(form, work) {
    if (form.dataset.busy) return;
    form.dataset.busy = "1";
    form.setAttribute("aria-busy", "true");
    try {
      await work();
    } finally {
      delete form.dataset.busy;
      form.removeAttribute("aria-busy");
    }
  }

  // -- numbers and tables
  const format = (value, digits, sign = false) => new Intl.NumberFormat(language, {
    minimumFractionDigits: digits, maximumFractionDigits: digits, signDisplay: sign ? "exceptZero" : "auto", useGrouping: false,
  }).format(value).replace("-", "−");
  const rating = (value, sign = false) => {
    if (!value) return say("new");
    if ("rank" in value) return `${format(value.rank, 0, sign)} / ${format(value.index, 0, sign)}`;
    return format(value.rating, sign ? 1 : 0, sign);
  };
  const QUOTED = new Set(["7:0", "5:0", "3:1", "2:0", "2:1", "2:2", "1:2", "0:2", "1:3", "0:5", "0:7"]);
  function quoteTable(outcomes, names) {
    const seats = [...names.values()];
    const label = (outcome) => words[outcome] ?? names.get(outcome) ?? outcome.replace(/player(\d+)/g, (_, seat) => seats[seat - 1] ?? seat).replace(">", " > ");
    const shown = outcomes.length > 12 ? outcomes.filter(({ outcome }) => QUOTED.has(outcome)) : outcomes;
    const players = outcomes[0]?.players.map(({ player }) => player) ?? [];
    return el("table", { class: "quote" }, el("caption", {}, say("quote")),
      el("thead", {}, el("tr", {}, el("th", { scope: "col" }, say("outcome")), ...players.map((player) => el("th", { scope: "col", class: "n", dir: "auto" }, names.get(player) ?? player)))),
      el("tbody", {}, ...shown.map(({ outcome, players: changes }) => el("tr", {}, el("th", { scope: "row" }, label(outcome)),
        ...players.map((player) => el("td", { class: "n" }, rating(changes.find((change) => change.player === player)?.change, true)))))));
  }
  function effectTable({ effects }, names = new Map()) {
    if (!effects.players.length) return el("p", { class: "when" }, say("no-effect"));
    const place = (row) => (row.place_before === row.place_after ? String(row.place_after ?? "") : `${row.place_before ?? "–"} → ${row.place_after ?? "–"}`);
    return el("div", {}, el("table", { class: "quote" }, el("caption", {}, say("effect")),
      el("thead", {}, el("tr", {}, ...["player", "before", "after", "place"].map((key, index) => el("th", { scope: "col", class: index ? "n" : null }, say(key))))),
      el("tbody", {}, ...effects.players.slice(0, 200).map((row) => el("tr", {}, el("th", { scope: "row", dir: "auto" }, names.get(row.player) ?? nameOf(row.player)),
        el("td", { class: "n" }, rating(row.before)), el("td", { class: "n" }, rating(row.after), " ", el("small", {}, rating(row.change, true))), el("td", { class: "n" }, place(row)))))),
    effects.games_rerated ? el("p", { class: "when" }, say("rerated", { count: effects.games_rerated })) : null);
  }
  function quoter(sheet, holder) {
    const { pool } = state.pool;
    let timer, last = "";
    return () => {
      clearTimeout(timer);
      const players = sheet.players();
      if (players.length < 2 || players.some((player) => !player || player.register) || new Set(players.map((p) => p.player)).size < players.length) {
        holder.replaceChildren();
        last = "";
        return;
      }
      const line = sheet.lineUp();
      delete line.entry;
      const key = JSON.stringify(line);
      if (key === last) return;
      timer = setTimeout(async () => {
        if (state.pool.pool !== pool) return;
        last = key;
        try {
          const { body } = await call("POST", `/v1/pools/${pool}/quote`, { json: line });
          if (last === key && state.pool.pool === pool) holder.replaceChildren(quoteTable(body.outcomes, new Map(players.map((player) => [player.player, player.name]))));
        } catch {
          holder.replaceChildren();
          last = "";
        }
      }, 350);
    };
  }

  // -- one game
  const gameForm = $("#game form");
  let game, attempt = null;
  function prepareGame() {
    const holder = $("[data-system]", gameForm);
    let quote = () => {};
    game = new Sheet(holder, { times: gameTime, changed: () => { quote(); fresh(); } });
    quote = quoter(game, $("[data-quote]", gameForm));
    clearErrors(gameForm);
    fresh();
    $("[data-sent]").replaceChildren();
    const now = local(Date.now(), state.pool.time_zone);
    gameForm.elements.day.value = now.day;
    gameForm.elements.ended.value = now.time;
    gameForm.elements.began.value = "";
  }
  function fresh() {
    attempt = null;
    $("[data-preview]", gameForm).replaceChildren();
  }
  /** The instant of a time of day in this game: after midnight when it is before the beginning. */
  function gameTime(input, errors) {
    const { day, began, twice } = gameForm.elements;
    const late = began.value && input !== began && input.value < began.value;
    const found = instants(late ? dayAfter(day.value) : day.value, input.value, state.pool.time_zone);
    if (!found.length) errors.push([input, say("no-such-time")]);
    if (found.length > 1) twice.closest("label").hidden = false;
    const chosen = found[found.length > 1 ? Number(twice.value) : 0];
    return chosen === undefined ? undefined : new Date(chosen).toISOString();
  }
  function readGame(errors) {
    const fields = gameForm.elements;
    const body = { result: game.result(errors) };
    if (!fields.day.value) errors.push([fields.day, say("day")]);
    else {
      if (fields.ended.value) body.finished_at = gameTime(fields.ended, errors);
      else if (fields.began.value) body.finished_at = gameTime(fields.began, errors);
      else body.finished_at = fields.day.value;
      if (fields.began.value) body.started_at = gameTime(fields.began, errors);
    }
    for (const name of ["game_id", "group", "tournament", "note"]) if (fields[name].value.trim()) body[name] = fields[name].value.trim();
    if (fields.round.value.trim()) body.round = game.number(fields.round, errors);
    if (fields.unrated.checked) body.rated = false;
    if (fields.distinct.checked) body.distinct = true;
    return body;
  }
  async function sendGame(preview) {
    clearErrors(gameForm);
    for (const who of game.who()) who.settle();
    let errors = [];
    readGame(errors);
    if (errors.length) return showErrors(gameForm, errors);
    try {
      const register = await game.register();
      const body = readGame((errors = []));
      if (register.length) body.register = register;
      const names = new Map(register.map(({ id, name }) => [id, name]));
      const path = `/v1/pools/${state.pool.pool}/games`;
      if (preview) {
        const answer = await call("POST", path, { json: body, query: { preview: "true" } });
        return $("[data-preview]", gameForm).replaceChildren(answer.body.effects ? effectTable(answer.body, names) : say("unchanged", { id: answer.body.game_id }));
      }
      // The same key for the same content: a second tap, or a lost answer, stores no second game.
      const text = JSON.stringify(body);
      if (attempt?.text !== text) attempt = { text, key: crypto.randomUUID() };
      const answer = await call("POST", path, { json: body, headers: { "Idempotency-Key": attempt.key } });
      sent(answer, register);
    } catch (failure) {
      showFailure(gameForm, failure);
    }
    return undefined;
  }
  function sent({ status, body }, register) {
    state.roster.push(...register.map(({ id, name }) => searchable({ player: id, name })));
    const link = el("a", { href: `/${body.pool ?? state.pool.pool}/games/${body.club}/${body.game_id}/` }, body.game_id);
    const [before, after] = say(status === 201 ? "sent" : "unchanged", { id: "\0" }).split("\0");
    const warnings = (body.warnings ?? []).map(({ code, message }) => el("p", {}, translated(code, message)));
    $("[data-sent]").replaceChildren(el("p", { class: "note" }, before, link, after), ...warnings);
    for (const who of game.who()) if (who.chosen?.register) who.set(state.roster.find((player) => player.name === who.chosen.name));
    game.clearResult();
    const { day, ended, began, game_id: id, note, distinct } = gameForm.elements;
    const now = local(Date.now(), state.pool.time_zone);
    if (day.value === now.day) ended.value = now.time;
    began.value = id.value = note.value = "";
    distinct.checked = false;
    fresh();
    $("[data-sent]").scrollIntoView({ block: "nearest" });
  }

  // -- live tables
  let start;
  const startForm = $("#start");
  const tables = () => JSON.parse(state.store.getItem("desk.live") ?? "[]");
  const keepTables = (list) => state.store.setItem("desk.live", JSON.stringify(list));
  function prepareLive(started) {
    const able = state.pool.system !== "jass";
    $("#live [data-none]").hidden = able;
    $("#live [data-able]").hidden = !able;
    if (!able) return;
    let quote = () => {};
    start = new Sheet($("[data-line-up]", startForm), { result: false, entry: true, changed: () => quote() });
    quote = quoter(start, $("[data-quote]", startForm));
    clearErrors(startForm);
    $("#tables").replaceChildren();
    for (const { pool, id } of tables()) if (pool === state.pool.pool) openTable(id, id === started);
  }
  async function startGame() {
    clearErrors(startForm);
    for (const who of start.who()) who.settle();
    let errors = [];
    start.lineUp(errors);
    if (errors.length) return showErrors(startForm, errors);
    try {
      const register = await start.register();
      const body = { line_up: start.lineUp((errors = [])), started_at: new Date().toISOString() };
      if (register.length) body.register = register;
      const text = JSON.stringify(body.line_up);
      if (start.attempt?.text !== text) start.attempt = { text, key: crypto.randomUUID(), at: body.started_at };
      body.started_at = start.attempt.at;
      const answer = await call("POST", `/v1/pools/${state.pool.pool}/games`, { json: body, headers: { "Idempotency-Key": start.attempt.key } });
      state.roster.push(...register.map(({ id, name }) => searchable({ player: id, name })));
      keepTables([...tables(), { pool: state.pool.pool, id: answer.body.game_id }]);
      prepareLive(answer.body.game_id);
    } catch (failure) {
      showFailure(startForm, failure);
    }
    return undefined;
  }
  async function openTable(id, focus = false) {
    const path = `/v1/pools/${state.pool.pool}/games/${encodeURIComponent(id)}`;
    let found;
    try {
      found = (await call("GET", path)).body;
    } catch (failure) {
      if (failure.status !== 404) return alarm(reason(failure));
      found = null;
    }
    const old = $$("#tables > *").find((card) => card.dataset.id === id);
    if (!found || found.status !== "open") {
      keepTables(tables().filter((table) => table.id !== id));
      old?.remove();
      return alarm(say("not-open", { id }));
    }
    if (!tables().some((table) => table.id === id)) keepTables([...tables(), { pool: state.pool.pool, id }]);
    const card = tableCard(found, path);
    if (old) old.replaceWith(card);
    else $("#tables").prepend(card);
    if (focus) card.focus();
    return undefined;
  }
  function tableCard(found, path) {
    const line = found.line_up;
    const seats = (line.teams ? line.teams.flat() : line.players).map((player) => ({ player, name: nameOf(player) }));
    const zone = state.pool.time_zone;
    const form = el("form", { class: "card", novalidate: true, "data-id": found.game_id, tabindex: "-1" });
    const again = () => openTable(found.game_id, true);
    const act = (work) => whileBusy(form, async () => {
      clearErrors(form);
      try {
        await work();
        await again();
      } catch (failure) {
        if (failure.status === 412) { await again(); alarm(say("e:another-revision")); } else showFailure(form, failure);
      }
    });
    const quits = new Map((line.quits ?? []).filter((quit) => !quit.back_at).map((quit) => [quit.player, quit]));
    const holder = el("div");
    const people = seats.map(({ player, name }) => {
      const quit = quits.get(player);
      if (state.pool.system !== "spades") return el("li", {}, el("b", { dir: "auto" }, name));
      const now = () => ({ at: new Date().toISOString() });
      const button = quit
        ? el("button", { type: "button", class: "quiet", "aria-label": say("back", { name }), on: { click: () => act(() => call("POST", `${path}/quits/${player}/return`, { json: now() })) } }, say("is-back"))
        : el("button", { type: "button", class: "quiet", "aria-label": say("quit", { name }), on: { click: () => act(() => call("POST", `${path}/quits`, { json: { player, ...now() } })) } }, say("quits"));
      return el("li", {}, el("b", { dir: "auto" }, name), quit ? el("span", { class: "when" }, say("quit-at", { time: local(Date.parse(quit.at), zone).time })) : null, button);
    });
    const split = line.teams ? [people.slice(0, 2), people.slice(2)] : [people];
    form.append(
      el("h3", {}, found.game_id, " ", el("small", { class: "when" }, say("started", { time: local(Date.parse(found.started_at), zone).time }))),
      el("div", { "data-errors": true, role: "alert", tabindex: "-1" }),
      el("div", { class: "teams" }, ...split.map((side) => el("ul", { class: "seats" }, ...side))),
      holder,
      el("p", { class: "buttons" }, el("button", {}, say("finish")),
        el("button", { type: "button", class: "quiet", on: { click: () => { keepTables(tables().filter((table) => table.id !== found.game_id)); form.remove(); } } }, say("forget"))),
    );
    const why = el("input", { maxlength: "500" });
    form.append(el("details", {}, el("summary", {}, say("void")), el("label", {}, say("void-why"), why),
      el("p", {}, el("button", { type: "button", class: "quiet", on: { click: () => {
        if (!why.value.trim()) return why.focus();
        return act(() => call("POST", `${path}/void`, { json: { reason: why.value.trim() } }));
      } } }, say("void")))));
    const day = local(Date.parse(found.started_at), zone);
    const sheet = new Sheet(holder, { lineUp: false, seats, times: (input, errors) => {
      const times = instants(input.value < day.time ? dayAfter(day.day) : day.day, input.value, zone);
      if (!times.length) errors.push([input, say("no-such-time")]);
      return times.length ? new Date(times[0]).toISOString() : undefined;
    } });
    if (state.pool.system === "spades") { $("[data-list=quits]", holder).remove(); $('[data-add="quits"]', holder).remove(); }
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      whileBusy(form, async () => {
        clearErrors(form);
        const errors = [];
        const result = sheet.result(errors);
        if (line.alliances) result.alliances = line.alliances;
        if (state.pool.system === "spades" && !result.outcome && !quits.size) errors.push([$("[data-choice=outcome] input", holder), say("result-missing")]);
        if (errors.length) return showErrors(form, errors);
        try {
          const register = await sheet.register();
          const body = { reason: "desk", finished_at: new Date().toISOString(), result: sheet.result([]) };
          if (line.alliances) body.result.alliances = line.alliances;
          if (register.length) body.register = register;
          await call("PUT", path, { json: body, headers: { "If-Match": `"${found.revision}"` } });
          keepTables(tables().filter((table) => table.id !== found.game_id));
          form.replaceWith(el("p", { class: "note", role: "status" }, say("finished", { id: found.game_id })));
        } catch (failure) {
          if (failure.status === 412) { await again(); alarm(say("e:another-revision")); } else showFailure(form, failure);
        }
        return undefined;
      });
    });
    return form;
  }

  // -- many games
  const fileForm = $("#file");
  const many = {};
  function takeUp(body, filename = "") {
    Object.assign(many, { body, filename, table: null, mended: false, days: null, sheet: "", forfeits: "", answers: new Map() });
  }
  takeUp(null);
  function prepareMany() {
    const system = state.pool.system;
    const players = system === "bridier" ? "player1, player2" : "team1_player1, team1_player2, team2_player1, team2_player2";
    const result = { spades: "winner (1, 2, draw)", bridier: "winner (1, 2, draw)", jass: state.settings.measure === "points" ? "points1, points2" : "striche1, striche2" }[system];
    $("#columns").replaceChildren(
      say("columns-players"), " ", el("code", {}, players), el("br"), say("columns-result"), " ", el("code", {}, result), el("br"),
      say("columns-more"), " ", el("code", {}, "date, time, game_id, group, tournament, round, note"));
    $("#report").replaceChildren();
    $("#taken-out").replaceChildren();
    fileForm.hidden = false;
  }
  const takeOutForm = $("#take-out");
  async function takeOut() {
    const month = takeOutForm.elements.month.value.trim();
    const path = `/v1/pools/${state.pool.pool}/games`;
    const parts = [];
    alarm("");
    let [games, short, left, cursor] = [0, 0, 0, null];
    do {
      const { body } = await patiently(() => call("GET", path, { query: { month, cursor } }));
      parts.push(parts.length ? body.csv.slice(body.csv.indexOf("\n") + 1) : body.csv);
      [games, short, left, cursor] = [games + body.games, short + body.shortened, left + body.left_out, body.next];
    } while (cursor);
    const address = URL.createObjectURL(new Blob(parts, { type: "text/csv" }));
    const name = `${state.pool.pool}-${state.club}-${month}.csv`;
    $("#taken-out").replaceChildren(
      games ? el("a", { href: address, download: name }, name) : say("taken-none"),
      games ? `. ${say("taken-out", { count: format(games, 0) })} ` : " ",
      short ? `${say("taken-short", { count: format(short, 0) })} ` : "",
      left ? say("taken-left", { count: format(left, 0) }) : "");
  }
  async function takeFile() {
    const chosen = fileForm.elements.file.files[0];
    const text = fileForm.elements.text.value;
    if (!chosen && !text.trim()) return alarm(say("nothing"));
    alarm("");
    if (chosen && chosen.size > 12e6) return alarm(say("too-large"));
    takeUp(chosen ?? new Blob([text]), chosen?.name);
    await look();
    return undefined;
  }
  /** The file as it is now: its own bytes, until a row is mended; then all its rows, written anew. */
  function current() {
    if (!many.mended) return many.body;
    const { columns, games } = many.table;
    const day = many.days?.[given("round-dates")]; // what only the report's head says
    const dated = columns.findIndex((column) => column.name === "date");
    const rows = games.map(({ cells }) => (day && !cells[dated] ? columns.map((_, index) => (index === dated ? day : cells[index])) : cells));
    return new Blob([toCsv(columns.map((column) => column.heading), rows)]);
  }
  /** Answers by the keys the file has now: rows that are written anew are counted from 2. */
  function answers() {
    const found = {};
    for (const [key, { value, row, sign }] of many.answers) {
      if (!value) continue;
      if (row === undefined) found[key] = value;
      else {
        found[`${key}${sign}${many.mended ? many.table.games.findIndex((game) => game.row === row) + 2 : row}`] = value;
      }
    }
    return Object.keys(found).length ? JSON.stringify(found) : undefined;
  }
  function progress(text, value) {
    const box = $("#progress");
    const begins = box.hidden;
    box.hidden = text === null;
    if (text === null) return;
    if (begins) box.scrollIntoView({ block: "nearest" }); // the button that was pressed may be far below
    $("span", box).textContent = text;
    const bar = $("progress", box);
    if (value === undefined) bar.removeAttribute("value");
    else bar.value = value;
  }
  const pause = (milliseconds) => new Promise((resolve) => { setTimeout(resolve, milliseconds); });
  async function send(query) {
    const body = current();
    const options = { ...query, filename: many.filename.slice(0, 200), sheet: many.sheet, forfeits: many.forfeits, answers: answers() };
    progress(say("reading"));
    try {
      if (body.size <= 1e6) {
        const file = { body, query: options, headers: { "Content-Type": "application/octet-stream" } };
        const { status, body: answer } = await patiently(() => call("POST", `/v1/pools/${state.pool.pool}/imports`, file));
        return status === 202 ? await waitFor(answer.import_id) : answer;
      }
      progress(say("uploading"));
      const { body: form } = await call("POST", `/v1/pools/${state.pool.pool}/uploads`, { json: { filename: many.filename || "rows.csv", bytes: body.size }, query: { ...options, filename: undefined } });
      const data = new FormData();
      for (const [name, value] of Object.entries(form.fields)) data.append(name, value);
      data.append("file", body);
      await upload(form.url, data);
      return await waitFor(form.import_id);
    } finally {
      progress(null);
    }
  }
  /** Not by fetch, which does not tell how far it is. */
  function upload(url, data) {
    return new Promise((resolve, reject) => {
      const request = new XMLHttpRequest();
      request.upload.addEventListener("progress", ({ loaded, total }) => progress(say("uploading"), loaded / total));
      request.addEventListener("load", () => (request.status < 300 ? resolve() : reject(new Failure(request.status))));
      request.addEventListener("error", () => reject(new Failure(0)));
      request.open("POST", url);
      request.send(data);
    });
  }
  /** The report of an import that goes on by itself: it outlives a line that is down, and a busy service. */
  async function waitFor(id) {
    for (let step = 0, failed = 0; ; step += 1) {
      try {
        const { body } = await call("GET", `/v1/imports/${id}`);
        if (body.report) return { ...body.report, bad_rows_url: body.bad_rows_url };
        progress(body.rows ? say("storing", { done: format(body.done, 0), rows: format(body.rows, 0) }) : say("reading"), body.rows ? body.done / body.rows : undefined);
        failed = 0;
      } catch (failure) {
        if (![0, 429, 500, 502, 503, 504].includes(failure.status) || (failed += 1) > PATIENCE) throw failure;
      }
      await pause(Math.min(500 + 250 * step, 2500));
    }
  }
  const look = () => whileBusy(fileForm, lookNow);
  async function lookNow() {
    alarm("");
    try {
      const report = await send({ preview: "true" });
      if (report.rows === 0 && report.errors.length) return unreadable(report.errors, report.sheets);
      const kept = many.table?.games;
      many.table = { columns: report.columns, games: report.games };
      const dates = report.questions.find(({ code }) => code === "round-dates");
      if (dates) many.days = Object.fromEntries(dates.candidates.map((value, index) => [value, dates.examples[index].text]));
      rekey(kept);
      showReport(report);
    } catch (failure) {
      if (failure instanceof Failure && (failure.problem.file_errors || failure.status === 413)) unreadable(failure.problem.file_errors ?? [{ message: failure.problem.detail }], failure.problem.sheets);
      else if (failure instanceof Failure) alarm(reason(failure));
      else throw failure;
    }
    return undefined;
  }
  /** Answers for single rows follow them to their new numbers. */
  function rekey(before) {
    if (!before) return;
    for (const [key, answer] of [...many.answers]) {
      if (answer.row === undefined) continue;
      const index = before.findIndex((row) => row.row === answer.row);
      many.answers.delete(key);
      if (many.table.games[index]) {
        answer.row = many.table.games[index].row;
        many.answers.set(key.replace(/\0.*$/, `\0${answer.row}`), answer);
      }
    }
  }
  function unreadable(errors, sheets) {
    const report = $("#report");
    report.replaceChildren(sheetChoice(sheets) ?? "", el("div", { class: "note", role: "alert" }, el("p", {}, say("not-read")), el("ul", {}, ...errors.slice(0, 50).map((error) => el("li", {},
      error.row ? `${say("row", { row: error.row })}: ` : "", translated(error.code, error.message))))));
    report.focus();
  }
  /** Which sheet of a workbook is read: another one is another file. */
  function sheetChoice(sheets, read) {
    if (!sheets || sheets.length < 2 || many.mended) return null;
    const options = read ? [] : [["", say("first")]];
    return pick(say("sheet"), [...options, ...sheets.map((name) => [name, name])], read ?? many.sheet, (name) => {
      Object.assign(many, { sheet: name, table: null, answers: new Map() });
      look();
    });
  }
  /** Games won without play: a report or PGN file has them, and whether they count the club says. */
  function forfeitChoice(report, changed) {
    if (many.mended || !(many.forfeits || report.notices.some(({ code }) => code === "skipped-forfeit"))) return null;
    const box = el("input", { type: "checkbox", on: { change: () => { many.forfeits = box.checked ? "count" : ""; changed(); } } });
    box.checked = many.forfeits === "count";
    return el("label", { class: "tick" }, box, ` ${say("forfeits")}`);
  }
  const plural = (count) => (count === 1 ? say("games-1") : say("games", { count: format(count, 0) }));
  function showReport(report) {
    const toDo = report.bad;
    const good = report.new + report.corrected;
    const wide = report.questions.filter(({ code }) => code === "date-order" || code === "round-dates");
    const waits = (row) => row.status === "bad" && (row.errors.length || row.questions.some((key) => !wide.some((question) => question.key === key)));
    const rows = report.complete ? report.games.filter(waits).length : toDo;
    const need = [
      wide.length ? say("need-answer") : null,
      rows === 1 ? say("need-1") : rows ? say("need", { count: rows }) : null,
      toDo ? null : say("need-0"),
    ].filter(Boolean).join(", ");
    const counts = ["new", "unchanged", "corrected", "skipped", "bad"].filter((name) => report[name]);
    const box = $("#report");
    const changed = () => { $("[data-again]", box).hidden = false; $("[data-confirm]", box).hidden = true; };
    const buttons = el("p", { class: "buttons" },
      el("button", { type: "button", "data-again": true, hidden: true, on: { click: look } }, say("look-again")),
      good ? el("button", { type: "button", "data-confirm": true, on: { click: () => confirm(report, toDo ? "lenient" : "strict") } }, toDo ? say("confirm-good", { count: good }) : say("confirm", { count: good }))
        : el("p", { "data-confirm": true, class: "when" }, toDo ? "" : say("confirm-none")),
      el("button", { type: "button", class: "quiet", on: { click: restart } }, say("start-over")));
    box.replaceChildren(
      el("h3", { class: "verdict", id: "verdict" }, `${plural(report.rows)}, ${need}`),
      el("p", { class: "when" }, counts.map((name) => `${format(report[name], 0)} ${say(`count-${name}`)}`).join(" · ")),
      ...report.notices.map(({ message }) => el("p", { class: "when" }, message)),
      sheetChoice(report.sheets, report.sheet) ?? "",
      forfeitChoice(report, changed) ?? "",
      questions(report, changed) ?? "",
      badRows(report, changed) ?? "",
      corrections(report) ?? "",
      report.effects?.players.length ? el("details", {}, el("summary", {}, say("effects")), effectTable(report, new Map(report.registered.map(({ player, name }) => [player, name])))) : "",
      allRows(report) ?? "",
      buttons,
    );
    box.focus();
  }
  function restart() {
    $("#report").replaceChildren();
    fileForm.reset();
    fileForm.hidden = false;
    takeUp(null);
    fileForm.elements.file.focus();
  }
  function answer(key, value, row, sign) {
    many.answers.set(row === undefined ? key : `${key}\0${row}`, { value, row, sign });
  }
  const given = (key, row) => many.answers.get(row === undefined ? key : `${key}\0${row}`)?.value ?? "";
  function pick(label, options, value, chosen) {
    const select = el("select", { on: { change: () => chosen(select.value) } }, ...options.map(([key, text]) => el("option", { value: key }, text)));
    select.value = value;
    return el("label", {}, label, select);
  }
  function questions(report, changed) {
    if (!report.questions.length) return null;
    const base = (key) => key.replace(/:\d+$/, "");
    const strangers = report.questions.filter(({ code }) => code === "unknown-player");
    const parts = [];
    if (strangers.length > 1) {
      const all = el("input", { type: "checkbox", on: { change: () => { answer("player", all.checked ? "register" : ""); changed(); } } });
      all.checked = given("player") === "register";
      parts.push(el("label", { class: "tick" }, all, ` ${say("who-all", { count: strangers.length })}`));
    }
    for (const code of ["possible-duplicate", "repeated-hour"]) {
      const same = report.questions.filter((question) => question.code === code);
      if (same.length > 1) {
        parts.push(pick(say("duplicates-all", { count: same.length }), [["", say("later")], ...same[0].candidates.map((value) => [value, say(value)])], given(base(same[0].key)),
          (value) => { answer(base(same[0].key), value); changed(); }));
      }
    }
    for (const question of report.questions.slice(0, 30)) parts.push(asked(question, changed));
    return el("fieldset", { class: "card asks" }, el("legend", {}, say("questions")), ...parts);
  }
  function asked(question, changed) {
    const where = question.rows?.length ? ` (${question.rows.length === 1 ? say("row", { row: question.rows[0] }) : say("rows", { rows: question.rows.slice(0, 6).join(", ") + (question.rows.length > 6 ? " …" : "") })})` : "";
    if (question.code === "which-player" || question.code === "unknown-player") return whoIs(question, where, changed);
    const row = question.key.match(/:(\d+)$/)?.[1];
    const key = question.key.replace(/:\d+$/, "");
    const text = question.code === "possible-duplicate" ? say("possible-duplicate", { id: question.existing?.game_id })
      : say(question.code, { example: question.examples?.[0]?.text ?? "" });
    const days = question.code === "round-dates" ? question.examples : [];
    const named = (value, index) => say(value) + (days[index] ? ` (${days[index].text})` : "");
    return pick(text + where, [["", say("later")], ...question.candidates.map((value, index) => [value, named(value, index)])], given(key, row && Number(row)),
      (value) => { answer(key, value, row && Number(row), ":"); changed(); });
  }
  function whoIs(question, where, changed) {
    const day = (at) => (at ? say("last-game", { day: new Intl.DateTimeFormat(language, { dateStyle: "medium", timeZone: state.pool.time_zone }).format(new Date(at)) }) : say("never"));
    const options = [["", say("later")], ...question.candidates.map((one) => [one.player, [one.name, one.player, one.clubs.join(", "), day(one.last_game)].filter(Boolean).join(" · ")])];
    if (question.register) options.push([`+${question.register}`, say("who-register", { id: question.register })]);
    const title = question.candidates.length ? say("who-is", { name: question.name }) : say("who-new", { name: question.name });
    const box = el("div", { class: "fields" });
    const chosen = (row) => (value) => { answer(question.key, value, row, "#"); changed(); };
    const other = el("div", { class: "who", "data-who": true }, el("label", {}, say("who-other"), el("input", { role: "combobox", "aria-expanded": "false", "aria-autocomplete": "list", autocomplete: "off", autocapitalize: "none", spellcheck: "false" })), el("ul", { role: "listbox", "aria-label": say("who-other"), hidden: true }));
    const who = new Who(other, () => { if (who?.chosen && !who.chosen.register) { answer(question.key, who.chosen.player); changed(); } });
    box.append(pick(title + where, options, given(question.key), chosen()), other);
    if (question.candidates.length && question.rows.length > 1) {
      for (const row of question.rows.slice(0, 30)) box.append(pick(say("row", { row }), options, given(question.key, row), chosen(row)));
    }
    return box;
  }
  function heading(column) {
    return column.heading || words[`c:${column.name}`] || column.name || "";
  }
  /** The columns, and one for every cell that stands beyond the headings: it must be seen to be mended. */
  function cellsOf(report, row) {
    return [...report.columns, ...row.cells.slice(report.columns.length).map(() => ({ name: null, heading: say("no-heading") }))];
  }
  function badRows(report, changed) {
    const rows = report.games.filter((row) => row.status === "bad" && row.errors.length);
    if (!rows.length) return null;
    return el("div", { class: "bad" }, ...rows.slice(0, 100).map((row) => {
      const wrong = new Map(row.errors.map((error) => [error.column, error]));
      const loose = row.errors.filter((error) => !report.columns.some((column) => column.name === error.column));
      return el("fieldset", { class: "card row", "data-row-number": row.row }, el("legend", {}, say("row", { row: row.row })),
        ...loose.map((error) => el("p", { class: "wrong" }, translated(error.code, error.message))),
        el("div", { class: "fields" }, ...cellsOf(report, row).map((column, index) => {
          if (!column.heading && !row.cells[index]) return null;
          const error = column.name && wrong.get(column.name);
          const id = `r${row.row}-${index}`;
          const input = el("input", { value: row.cells[index] ?? "", readonly: !report.complete, "aria-invalid": error ? "true" : null, "aria-describedby": error ? id : null, on: { keydown: (event) => { if (event.key === "Enter" && many.mended) look(); }, input: () => {
            while (row.cells.length <= index) row.cells.push("");
            row.cells[index] = input.value;
            many.mended = true;
            changed();
          } } });
          return el("label", { class: error ? "wrong" : null }, heading(column), input, error ? el("span", { id }, translated(error.code, error.message)) : null);
        })));
    }));
  }
  function corrections(report) {
    if (!report.corrections.length) return null;
    return el("details", { open: report.corrections.length < 20 }, el("summary", {}, `${say("corrections")} (${report.corrected})`), el("ul", {}, ...report.corrections.map((entry) => el("li", {},
      `${say("row", { row: entry.row })}, ${entry.game_id}: `,
      entry.changes.map(({ column, before, after }) => `${words[`c:${column}`] ?? column}: ${say("instead", { before: before || say("empty"), after: after || say("empty") })}`).join("; ")))));
  }
  function allRows(report) {
    if (!report.complete || !report.games.length) return null;
    return el("details", {}, el("summary", {}, say("all-rows")), el("div", { class: "wide", tabindex: "0", role: "region", "aria-label": say("all-rows") }, el("table", {},
      el("thead", {}, el("tr", {}, el("th", { scope: "col" }, "#"), el("th", { scope: "col" }, say("status")), ...report.columns.map((column) => el("th", { scope: "col" }, heading(column))))),
      el("tbody", {}, ...report.games.slice(0, 500).map((row) => el("tr", {}, el("th", { scope: "row" }, String(row.row)), el("td", {}, say(`count-${row.status}`)), ...report.columns.map((_, index) => el("td", { dir: "auto" }, row.cells[index] ?? ""))))))));
  }
  async function confirm(report, mode) {
    await whileBusy(fileForm, async () => {
      try {
        const done = await send({ mode, preview_token: undefined });
        if (done.status === "refused") {
          alarm(done.errors[0] ? translated(done.errors[0].code, done.errors[0].message) : say("failed"));
          return;
        }
        await loadRoster();
        await stored(done);
      } catch (failure) {
        if (!(failure instanceof Failure)) throw failure;
        alarm(reason(failure));
      }
    });
  }
  async function stored(done) {
    const box = $("#report");
    const told = el("p", { class: "note", role: "status" }, say("stored", { new: format(done.new, 0), unchanged: format(done.unchanged, 0), corrected: format(done.corrected, 0) }));
    if (!done.bad) {
      restart();
      box.replaceChildren(told);
      box.focus();
      return;
    }
    const address = done.bad_rows_url ?? (done.bad_rows_csv ? URL.createObjectURL(new Blob([done.bad_rows_csv], { type: "text/csv" })) : null);
    const rest = el("p", {}, say("left", { count: format(done.bad, 0) }), " ", address ? el("a", { href: address, download: "rows.csv" }, say("download")) : "");
    if (done.bad_rows_csv) {
      takeUp(new Blob([done.bad_rows_csv]), many.filename);
      box.replaceChildren();
      await lookNow();
    }
    box.prepend(told, rest);
    box.focus();
  }

  // -- the inbox
  async function loadInbox() {
    const holder = $("#letters");
    try {
      const { body } = await call("GET", `/v1/clubs/${state.club}/attention`);
      const parts = Object.entries(body).filter(([, list]) => Array.isArray(list) && list.length).map(([kind, list]) => el("section", {},
        el("h3", {}, `${words[{ questions: "asks", rows: "left-rows" }[kind] ?? kind] ?? kind} (${list.length})`),
        el("ul", { class: "feed" }, ...list.map(letter))));
      holder.replaceChildren(...(parts.length ? parts : [el("p", {}, say("inbox-empty"))]));
    } catch (failure) {
      holder.replaceChildren(el("p", {}, reason(failure)));
    }
  }
  function letter(entry) {
    const pool = state.pools.find((known) => known.pool === entry.pool);
    if (entry.errors) return leftRows(entry, pool);
    const id = entry.game_id ?? entry.game?.split(":").at(-1);
    const link = id && entry.pool ? el("a", { href: `/${entry.pool}/games/${entry.club ?? state.club}/${id}/` }, id) : id ?? "";
    const told = entry.name ? `${entry.name}: ${(entry.players ?? []).join(", ")}` : (entry.players ?? []).map(nameOf).join(", ");
    const texts = [told, entry.reason, translated(entry.code, entry.message), entry.detail, ...(entry.warnings ?? []).map((warning) => translated(warning.code, warning.message))].filter(Boolean);
    return el("li", {}, el("b", {}, pool?.name ?? entry.pool ?? ""), " ", link, ...texts.map((text) => el("p", {}, text)));
  }

  function leftRows({ filename, at, bad, errors, import_id: id }, pool) {
    const day = new Intl.DateTimeFormat(language, { dateStyle: "medium", timeZone: pool?.time_zone }).format(new Date(at));
    const mend = async () => {
      try {
        const { report, bad_rows_url: apart } = (await call("GET", `/v1/imports/${id}`)).body;
        const csv = report.bad_rows_csv ?? (apart && await fetch(apart).then((reply) => reply.text()));
        if (!csv) return;
        $("#pool").value = pool.pool;
        choosePool();
        location.hash = "many";
        takeUp(new Blob([csv]), filename);
        await look();
      } catch (failure) {
        alarm(reason(failure));
      }
    };
    return el("li", {}, el("b", {}, pool?.name ?? ""), " ", el("span", { dir: "auto" }, filename), " ", el("span", { class: "when" }, day),
      bad ? el("p", {}, say("left-count", { count: bad })) : null,
      ...errors.map((error) => el("p", {}, error.row ? `${say("row", { row: error.row })}: ` : "", translated(error.code, error.message))),
      id && bad && pool ? el("p", {}, el("button", { type: "button", class: "quiet", on: { click: mend } }, say("mend"))) : null);
  }

  // -- the beginning
  $("#enter").addEventListener("submit", (event) => {
    event.preventDefault();
    const { key, keep } = event.target.elements;
    alarm("");
    whileBusy(event.target, () => enter(key.value.trim(), keep.checked ? localStorage : sessionStorage).catch((failure) => {
      state.key = null;
      if (!(failure instanceof Failure)) throw failure;
      alarm(reason(failure));
      key.select();
    }));
  });
  gameForm.addEventListener("submit", (event) => { event.preventDefault(); whileBusy(gameForm, () => sendGame(false)); });
  $("[data-try]", gameForm).addEventListener("click", () => whileBusy(gameForm, () => sendGame(true)));
  gameForm.addEventListener("input", fresh);
  startForm.addEventListener("submit", (event) => { event.preventDefault(); whileBusy(startForm, startGame); });
  $("#find").addEventListener("submit", (event) => { event.preventDefault(); openTable(event.target.elements.id.value.trim().toLowerCase(), true); });
  fileForm.addEventListener("submit", (event) => { event.preventDefault(); takeFile(); });
  takeOutForm.addEventListener("submit", (event) => { event.preventDefault(); whileBusy(takeOutForm, () => takeOut().catch((failure) => alarm(reason(failure)))); });
  $("#pool").addEventListener("change", choosePool);
  $("#leave").addEventListener("click", leave);
  $("#again").addEventListener("click", loadInbox);
  window.addEventListener("hashchange", () => { if (state.key) { alarm(""); route(); } });
  const ready = fetch("/site.json", { cache: "no-cache" }).then((reply) => reply.json()).catch(() => ({})).then(({ api }) => {
    state.api = !api || api === location.origin ? "" : api;
  });
  root.hidden = false;
  const kept = localStorage.getItem("desk.key") ? localStorage : sessionStorage;
  if (kept.getItem("desk.key")) enter(kept.getItem("desk.key"), kept).catch((failure) => {
    if (failure.status === 401) kept.removeItem("desk.key");
    state.key = null;
    alarm(reason(failure));
  });
}
