// The threshold slider: rates of every group from its histograms. The slider moves over the edges of the bins, so that the
// counts on either side of the threshold are exact.
for (const box of document.querySelectorAll(".threshold")) {
  const { edges, groups } = JSON.parse(box.dataset.histograms);
  const start = Number(box.dataset.start);
  const range = box.querySelector("input");
  const rows = [...box.querySelectorAll("tbody tr")];
  const total = (counts, from = 0) => counts.slice(from).reduce((sum, count) => sum + count, 0);
  const share = (part, whole) => (whole ? part / whole : null);
  const percent = (rate) => (rate === null ? "–" : `${(100 * rate).toFixed(1)}\u00a0%`);
  const rates = ([negatives, positives], place) => {
    const [hits, alarms] = [total(positives, place), total(negatives, place)];
    const [nPositive, nNegative] = [total(positives), total(negatives)];
    return [share(hits + nNegative - alarms, nPositive + nNegative), share(hits, nPositive), share(alarms, nNegative)];
  };
  const change = (now, before) => {
    const points = 100 * (now - before);
    return now === null || Math.abs(points) < 0.05 ? "–" : `${points > 0 ? "+" : "−"}${Math.abs(points).toFixed(1)}`;
  };
  const update = () => {
    const place = Number(range.value);
    const text = edges[place];
    range.setAttribute("aria-valuetext", text);
    box.querySelector("output").textContent = text;
    groups.forEach((group, number) => {
      const [accuracy, truePositive, falsePositive] = rates(group, place);
      const cells = rows[number].cells;
      cells[2].textContent = percent(accuracy);
      cells[2].style.setProperty("--share", accuracy ?? 0);
      cells[3].textContent = change(accuracy, rates(group, start)[0]);
      cells[4].textContent = percent(truePositive);
      cells[5].textContent = percent(falsePositive);
      if (number === 0) box.querySelector(".overall").textContent = `Overall accuracy ${percent(accuracy)}`;
    });
  };
  range.addEventListener("input", update);
  box.querySelector("[data-reset]").addEventListener("click", () => {
    range.value = start;
    update();
  });
}
