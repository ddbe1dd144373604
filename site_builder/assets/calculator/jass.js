// Jass-Elo, as shared/ratings/jass.py computes it; a test compares the two number by number.
const million = 1e6;

/** Ratings in points, teams [a, c] and [b, d]; what each team scored. The change is each first player's, in millionths. */
export function rate(teams, scored, settings) {
  const [own, other] = teams.map(([one, two]) => (one + two) / 2);
  const e = 1 / (1 + 10 ** ((other - own) / 1000));
  const points = settings.measure === "points";
  const most = points ? settings.target_points : 7;
  const expected = (2 * e - 1) * (points ? settings.target_points : scored[0] + scored[1]);
  const deviation = scored[0] - scored[1] - expected;
  const s = Math.min(Math.max(0.5 + deviation / (2 * most), 0), 1);
  const change = halfEven(settings.k * (s - e) * million / 2);
  const after = teams.map((team, side) => team.map((rating) => (Math.round(rating * million) + (side ? -change : change)) / million));
  return { e, expected, deviation, s, change, after };
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
    const scored = [value("x"), value("y")];
    const result = form.checkValidity() && [...teams.flat(), ...scored].every(Number.isFinite) ? rate(teams, scored, settings) : null;
    const put = (name, text) => { box.querySelector(`[data-out=${name}]`).textContent = result ? text() : "–"; };
    put("e", () => show(4)(result.e));
    put("expected", () => show(2, true)(result.expected));
    put("deviation", () => show(2, true)(result.deviation));
    put("s", () => show(4)(result.s));
    put("change", () => show(3, true)(result.change / million));
    ["a", "c", "b", "d"].forEach((name, number) => put(name, () => show(2)(result.after.flat()[number])));
  };
  form.hidden = false;
  box.querySelector("[data-results]").hidden = false;
  form.addEventListener("input", update);
  form.addEventListener("submit", (event) => event.preventDefault());
  update();
}
