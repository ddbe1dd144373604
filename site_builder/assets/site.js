// Only adds: every page works without it. Search for a player, sort a table by a column.
document.querySelector("[data-unscripted]")?.remove();

const fold = (text) =>
  text.normalize("NFKD").replace(/\p{M}/gu, "").toLowerCase()
    .replace(/[ßæœøđðłþıħŋ]/g, (c) => ({ ß: "ss", æ: "ae", œ: "oe", ø: "o", đ: "d", ð: "d", ł: "l", þ: "th", ı: "i", ħ: "h", ŋ: "n" })[c]);

for (const box of document.querySelectorAll("[data-search]")) {
  box.hidden = false;
  const input = box.querySelector("input");
  const list = box.querySelector("ul");
  const status = box.querySelector("[role=status]");
  const shards = new Map();
  const load = (letter) => {
    if (!shards.has(letter)) {
      const wanted = fetch(`${box.dataset.search}search/${letter}.json`).then((r) => (r.ok ? r.json() : []));
      wanted.catch(() => shards.delete(letter));
      shards.set(letter, wanted);
    }
    return shards.get(letter);
  };
  const show = async () => {
    const words = fold(input.value).split(/\s+/).filter(Boolean);
    list.replaceChildren();
    status.textContent = "";
    list.hidden = !words.length;
    if (!words.length) return;
    const asked = input.value;
    const players = await load(/[a-z0-9]/.test(words[0][0]) ? words[0][0] : "other").catch(() => []);
    if (asked !== input.value) return;
    const found = players.filter(([handle, name]) => {
      const parts = [...fold(name).split(/[\s-]+/), handle];
      return words.every((word) => parts.some((part) => part.startsWith(word)));
    }).slice(0, 12);
    for (const [handle, name] of found) {
      const link = document.createElement("a");
      link.href = `${box.dataset.players}${handle}/`;
      link.textContent = name;
      const item = document.createElement("li");
      item.append(link);
      list.append(item);
    }
    list.hidden = !found.length;
    status.textContent = found.length ? "" : box.dataset.none;
  };
  input.addEventListener("input", show);
  input.form?.addEventListener("submit", (event) => {
    event.preventDefault();
    list.querySelector("a")?.click();
  });
  box.addEventListener("keydown", (event) => {
    const links = [...list.querySelectorAll("a")];
    const at = links.indexOf(document.activeElement);
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step && links.length) {
      event.preventDefault();
      if (at + step < 0) input.focus();
      else links[Math.min(at + step, links.length - 1)].focus();
    } else if (event.key === "Escape") {
      list.hidden = true;
      input.focus();
    }
  });
}

for (const table of document.querySelectorAll("table[data-sort]")) {
  const body = table.tBodies[0];
  const value = (row, column) => {
    const cell = row.cells[column];
    const text = cell.dataset.v ?? cell.textContent.trim();
    const number = Number(text.replace("−", "-").replace(/[^\d.,-].*$/, "").replace(",", "."));
    return text && !Number.isNaN(number) ? number : text;
  };
  [...table.tHead.rows[0].cells].forEach((head, column) => {
    if (!head.textContent.trim() || head.hasAttribute("data-fixed")) return;
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const down = head.getAttribute("aria-sort") !== "descending" && (head.classList.contains("n") || head.hasAttribute("aria-sort"));
      for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const rows = [...body.rows].map((row) => [value(row, column), row]);
      rows.sort(([a], [b]) => {
        const order = typeof a === "number" && typeof b === "number" ? a - b
          : typeof a !== typeof b ? (typeof a === "number" ? -1 : 1)
          : a.localeCompare(b, document.documentElement.lang);
        return down ? -order : order;
      });
      body.append(...rows.map(([, row]) => row));
    });
  });
}
