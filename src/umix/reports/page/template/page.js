"use strict";
// Theme: auto follows the system. The choice is kept in this page only, because a page opened from disk may have no storage.
for (const button of document.querySelectorAll(".theme button")) {
  button.addEventListener("click", () => {
    document.documentElement.dataset.theme = button.dataset.theme;
    for (const other of document.querySelectorAll(".theme button")) other.setAttribute("aria-pressed", other === button);
  });
}

// The link of the section being read is marked in the navigation.
const links = [...document.querySelectorAll(".contents a")];
const targets = links.map((link) => document.getElementById(link.hash.slice(1)));
const markCurrent = () => {
  const passed = targets.filter((target) => target && target.getBoundingClientRect().top < 120);
  links.forEach((link, number) => {
    if (passed.length && targets[number] === passed.at(-1)) link.setAttribute("aria-current", "true");
    else link.removeAttribute("aria-current");
  });
};
window.addEventListener("scroll", () => requestAnimationFrame(markCurrent), { passive: true });

// Charts are drawn when they come near the window, and the others while the browser is idle.
const specs = JSON.parse(document.getElementById("charts").textContent);
const places = [...document.querySelectorAll(".chart")];
const views = new Map();
const started = new Set();
const isNarrow = (place) => place.clientWidth < 400;
const legendOf = (place) => [...place.closest("figure").querySelectorAll(".legend button")];
const pickedIn = (place) =>
  legendOf(place)
    .filter((button) => button.getAttribute("aria-pressed") === "true")
    .map((button) => button.dataset.name);
const draw = async (place) => {
  if (started.has(place)) return;
  started.add(place);
  watcher.unobserve(place);
  const options = { actions: false, renderer: "svg", mode: "vega-lite", logLevel: 1, tooltip: { theme: "page", disableDefaultStyle: true } };
  // Whether space is narrow is told at once: the room for labels is measured when the chart is drawn first.
  const spec = specs[place.id];
  const params = spec.params.map((param) => (param.name === "narrow" ? { ...param, value: isNarrow(place) } : param));
  try {
    const { view } = await vegaEmbed(place, { ...spec, params }, options);
    views.set(place, view);
    await view.signal("picked", pickedIn(place)).runAsync();
  } catch (error) {
    place.textContent = "This chart cannot be drawn here; its numbers are below.";
    console.error(error);
  }
};
const watcher = new IntersectionObserver(
  (entries) => entries.filter((entry) => entry.isIntersecting).forEach((entry) => draw(entry.target)),
  { rootMargin: "600px" },
);
places.forEach((place) => watcher.observe(place));
const whenIdle = window.requestIdleCallback ?? ((work) => setTimeout(work, 50));
const drawRest = () => {
  const next = places.find((place) => !started.has(place));
  if (next) whenIdle(() => draw(next).then(drawRest));
};
window.addEventListener("load", drawRest);
window.addEventListener("resize", () => views.forEach((view, place) => view.signal("narrow", isNarrow(place)).resize().runAsync()));

// A legend is a row of buttons: pressed names stay, the others turn faint; with none pressed all are shown.
for (const place of places) {
  for (const button of legendOf(place)) {
    button.addEventListener("click", () => {
      button.setAttribute("aria-pressed", button.getAttribute("aria-pressed") !== "true");
      views.get(place)?.signal("picked", pickedIn(place)).runAsync();
    });
  }
}

// Before printing the page takes the width of paper, so that charts are drawn in that size and their text is not shrunk.
// Charts of two columns are also made lower, so that two rows of them fit on a sheet.
const PRINTED_HEIGHT = 170;
const refit = (printing) =>
  views.forEach((view, place) => {
    const lower = printing && !place.closest(".wide-figure");
    const height = specs[place.id].height;
    view.signal("narrow", isNarrow(place)).width(place.clientWidth).height(lower ? Math.min(height, PRINTED_HEIGHT) : height).resize().run();
  });
window.addEventListener("beforeprint", () => {
  document.documentElement.classList.add("printing");
  places.forEach(draw);
  refit(true);
});
window.addEventListener("afterprint", () => {
  document.documentElement.classList.remove("printing");
  refit(false);
});

// Every table sorts by the column whose button is pressed and can be saved as CSV.
const textOf = (cell) => cell.textContent.replace(/\s+/g, " ").trim();
const valueOf = (cell) => cell.dataset.value ?? textOf(cell);
const numberOf = (text) => {
  const number = Number.parseFloat(text.replace(/[,+\s]/g, "").replace("−", "-"));
  return Number.isNaN(number) ? -Infinity : number;
};
const sortBy = (table, heads, column) => {
  const head = heads[column];
  const body = table.tBodies[0];
  const numeric = [head, body.rows[0]?.cells[column]].some((cell) => cell?.classList.contains("n")) || head.dataset.sort === "number";
  const was = head.getAttribute("aria-sort");
  const down = was ? was === "ascending" : numeric;
  heads.forEach((other) => other.removeAttribute("aria-sort"));
  head.setAttribute("aria-sort", down ? "descending" : "ascending");
  const keys = new Map([...body.rows].map((row) => [row, valueOf(row.cells[column])]));
  const compare = numeric
    ? (a, b) => Math.sign(numberOf(keys.get(a)) - numberOf(keys.get(b))) || 0
    : (a, b) => keys.get(a).localeCompare(keys.get(b));
  body.append(...[...body.rows].sort((a, b) => (down ? compare(b, a) : compare(a, b))));
};
const csvOf = (table) => {
  const rows = [...table.tBodies[0].rows].filter((row) => !row.hidden).map((row) => [...row.cells]);
  const heads = [...table.tHead.rows[0].cells].map((head, column) => {
    const percent = rows.some((row) => !row[column].dataset.value && /\d\s%$/.test(textOf(row[column])));
    return { text: textOf(head) + (percent ? ", %" : ""), percent };
  });
  const plain = (cell, { percent }) => {
    const text = valueOf(cell);
    return cell.classList.contains("n") ? text.replace(/,/g, "").replace(percent ? /\s%$/ : "", "") : text;
  };
  const quoted = (text) => (/[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
  const lines = [heads.map((head) => head.text), ...rows.map((row) => row.map((cell, column) => plain(cell, heads[column])))];
  return lines.map((line) => line.map(quoted).join(",")).join("\r\n") + "\r\n";
};
for (const table of document.querySelectorAll("table:not(.plain-table)")) {
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, column) => {
    let button = head.querySelector("button");
    if (!button) {
      button = Object.assign(document.createElement("button"), { type: "button" });
      button.append(...head.childNodes);
      head.append(button);
    }
    button.addEventListener("click", () => sortBy(table, heads, column));
    for (const row of table.tBodies[0].rows) row.cells[column].dataset.label = textOf(head);
  });
  const box = table.closest(".scroll") ?? table;
  const name = (table.caption?.textContent ?? box.getAttribute("aria-label") ?? "table").replace(/^Numbers of: /, "");
  const link = Object.assign(document.createElement("a"), { href: "#", className: "csv", textContent: "Download as CSV" });
  link.download = `${name.toLowerCase().replace(/[^\p{L}\p{N}]+/gu, "-").replace(/^-|-$/g, "").slice(0, 60)}.csv`;
  link.addEventListener("click", () => {
    link.href = URL.createObjectURL(new Blob(["\ufeff", csvOf(table)], { type: "text/csv" }));
    setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
  });
  box.after(link);
}

// A filter keeps the rows that hold every word.
for (const input of document.querySelectorAll(".filter input")) {
  const rows = [...document.getElementById(input.dataset.table).tBodies[0].rows];
  const texts = new Map(rows.map((row) => [row, row.textContent.toLowerCase()]));
  const status = document.getElementById(`${input.id}-status`);
  input.addEventListener("input", () => {
    const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
    for (const row of rows) row.hidden = !words.every((word) => texts.get(row).includes(word));
    status.textContent = words.length ? `${rows.filter((row) => !row.hidden).length} of ${rows.length}` : "";
  });
}

// A thumbnail opens large; Escape, the button or a click beside the picture closes it.
const large = document.getElementById("large");
for (const thumb of document.querySelectorAll(".thumb")) {
  thumb.addEventListener("click", () => {
    const small = thumb.querySelector("img");
    const picture = Object.assign(large.querySelector("img"), { src: small.src, alt: small.alt });
    picture.style.imageRendering = small.naturalWidth < 48 ? "pixelated" : "auto"; // digits keep their pixels
    large.querySelector("p").textContent = small.alt;
    large.showModal();
  });
}
large.addEventListener("click", (event) => {
  if (event.target === large || event.target.closest("button")) large.close();
});
