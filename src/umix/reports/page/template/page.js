"use strict";
// Charts are drawn when they come near the window: a page of many tasks opens as fast as one of few.
const specs = JSON.parse(document.getElementById("charts").textContent);
const narrow = (spec) => {
  spec.config.legend.columns = 1;
  spec.config.axisY.labelLimit = 120;
  spec.config.axisX.tickCount = 4;
  return spec;
};
const draw = (place) =>
  vegaEmbed(place, place.clientWidth < 400 ? narrow(specs[place.id]) : specs[place.id], { actions: false, renderer: "svg", mode: "vega-lite", logLevel: 1 }).catch((error) => {
    place.textContent = "This chart cannot be drawn here; its numbers are below.";
    console.error(error);
  });
const watcher = new IntersectionObserver(
  (entries) => {
    for (const entry of entries) {
      if (entry.isIntersecting) {
        watcher.unobserve(entry.target);
        draw(entry.target);
      }
    }
  },
  { rootMargin: "600px" },
);
const places = [...document.querySelectorAll(".chart")];
places.forEach((place) => watcher.observe(place));
window.addEventListener("beforeprint", () =>
  places.forEach((place) => {
    if (!place.classList.contains("vega-embed")) {
      watcher.unobserve(place);
      draw(place);
    }
  }),
);

// A table sorts by the column whose button is pressed; numbers by what their cells hold, not by how it is written.
const value = (row, column) => {
  const cell = row.cells[column];
  return cell.dataset.value ?? cell.textContent.trim();
};
for (const table of document.querySelectorAll("table.sortable")) {
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, column) =>
    head.querySelector("button").addEventListener("click", () => {
      const was = head.getAttribute("aria-sort");
      const down = was ? was === "ascending" : head.classList.contains("n");
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const body = table.tBodies[0];
      const keys = new Map([...body.rows].map((row) => [row, value(row, column)]));
      const numeric = head.classList.contains("n") || column === 0;
      const order = (a, b) => (numeric ? keys.get(a) - keys.get(b) : keys.get(a).localeCompare(keys.get(b)));
      body.append(...[...body.rows].sort((a, b) => (down ? order(b, a) : order(a, b))));
    }),
  );
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
