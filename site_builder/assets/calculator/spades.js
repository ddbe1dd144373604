// Spades Elo, as shared/ratings/spades.py computes it (without quits); a test compares the two number by number.
const million = 1e6;

/** Ratings in points, teams [a, c] and [b, d]; score 1, 0.5 or 0 for the first. Changes in millionths. */
export function rate(teams, score, k, opposition) {
  const expected = (own, other) => 1 / (1 + 10 ** ((other - own) / 400));
  const mean = teams.map(([one, two]) => (one + two) / 2);
  return teams.map((team, side) => team.map((own) => {
    const e = opposition === "pairwise"
      ? teams[1 - side].reduce((sum, other) => sum + expected(own, other), 0)
      : 2 * expected(mean[side], mean[1 - side]);
    const s = 2 * (side ? 1 - score : score);
    const change = halfEven(k * million * (s - e));
    return { expected: e, score: s, change, after: (Math.round(own * million) + change) / million };
  }));
}

function halfEven(value) {
  const whole = Math.round(value);
  return Math.abs(value % 1) === 0.5 && whole % 2 ? whole - 1 : whole;
}

if (typeof document !== "undefined") {
  const box = document.getElementById("calculator");
  const settings = JSON.parse(box.dataset.settings);
  const form = box.querySelector("form");
  const show = (digits, sign) => (value) => new Intl.NumberFormat(document.documentElement.lang, { minimumFractionDigits: digits, maximumFractionDigits: digits, signDisplay: sign ? "exceptZero" : "auto", useGrouping: false }).format(value).replace("-", "−");
  const update = () => {
    const value = (name) => Number(form.elements[name].value);
    const teams = [[value("a"), value("c")], [value("b"), value("d")]];
    const valid = form.checkValidity() && teams.flat().every(Number.isFinite);
    for (const row of box.querySelectorAll("tbody tr")) {
      const result = valid ? rate(teams, Number(row.dataset.score), value("k"), settings.opposition).flat() : [];
      // The columns are a, c, b, d, as the fields.
      [...row.querySelectorAll("td")].forEach((cell, number) => {
        cell.textContent = result.length ? `${show(1)(result[number].after)} (${show(1, true)(result[number].change / million)})` : "–";
      });
    }
    const share = valid ? rate(teams, 1, value("k"), settings.opposition)[0] : [];
    form.querySelector("output").textContent = share.length ? share.map((p) => show(3)(p.expected)).join(" / ") : "–";
  };
  form.hidden = false;
  box.querySelector("[data-results]").hidden = false;
  form.addEventListener("input", update);
  form.addEventListener("submit", (event) => event.preventDefault());
  update();
}
