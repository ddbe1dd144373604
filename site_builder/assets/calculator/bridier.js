// Bridier, as shared/ratings/bridier.py computes it; a test compares the two number by number. Whole numbers only.
const steps = [[0, 10], [10, 9], [20, 8], [30, 7], [40, 6], [60, 5], [80, 4], [100, 3], [140, 2], [200, 1]];

/** The stake of a win with that gap: winner's rank less loser's. */
export function stake(gap) {
  return steps.find(([most]) => gap <= most)?.[1] ?? 0;
}

/** A player's own share of a stake. */
export function share(points, own, other) {
  return Math.floor(points * (10000 + 1900 * own - 100 * other - 3 * own * other) / 160000);
}

/** Winner and loser as [rank, index]; what each has afterwards. */
export function beat(winner, loser) {
  const points = stake(winner[0] - loser[0]);
  const won = share(points, winner[1], loser[1]);
  const lost = share(points, loser[1], winner[1]);
  return {
    stake: points, won, lost,
    winner: [winner[0] + won, Math.max(winner[1] - won, 100)],
    loser: [Math.max(loser[0] - lost, 100), Math.max(loser[1] - lost, 100)],
  };
}

if (typeof document !== "undefined") {
  const box = document.getElementById("calculator");
  const form = box.querySelector("form");
  const update = () => {
    const value = (name) => Number(form.elements[name].value);
    const [one, two] = [[value("a"), value("i")], [value("b"), value("j")]];
    const valid = form.checkValidity() && [...one, ...two].every(Number.isInteger);
    for (const row of box.querySelectorAll("tbody tr")) {
      const cells = row.querySelectorAll("td");
      const first = row.dataset.wins === "first";
      const result = valid ? (first ? beat(one, two) : beat(two, one)) : null;
      cells[0].textContent = result ? result.stake : "–";
      const text = (after, before) => {
        const change = after[0] - before[0];
        return `${after[0]} / ${after[1]} (${change > 0 ? "+" : change < 0 ? "−" : "±"}${Math.abs(change)})`;
      };
      cells[1].textContent = result ? text(first ? result.winner : result.loser, one) : "–";
      cells[2].textContent = result ? text(first ? result.loser : result.winner, two) : "–";
    }
  };
  form.hidden = false;
  box.querySelector("[data-results]").hidden = false;
  form.addEventListener("input", update);
  form.addEventListener("submit", (event) => event.preventDefault());
  update();
}
