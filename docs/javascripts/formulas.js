// Settings of MathJax, which docs/site_hooks.py copies into the site and loads on the pages that have formulas.
window.MathJax = {
  options: { ignoreHtmlClass: ".*", processHtmlClass: "arithmatex", enableMenu: false },
  svg: { scale: 0.95 },
  tex: { inlineMath: [["\\(", "\\)"]], displayMath: [["\\[", "\\]"]] },
};
