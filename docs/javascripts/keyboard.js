// What is wider than the screen scrolls in a frame of its own; the keyboard must reach it. Material makes these frames when the page is
// shown, so they are looked for after that, and again when the window changes its width.
const reachFrames = () => {
  const frames = ".md-typeset__scrollwrap, .md-typeset table, .md-typeset .arithmatex, .md-typeset .highlight-ipynb";
  for (const frame of document.querySelectorAll(frames)) {
    if (frame.scrollWidth > frame.clientWidth) {
      frame.tabIndex = 0;
    } else {
      frame.removeAttribute("tabindex");
    }
  }
};

window.addEventListener("load", () => setTimeout(reachFrames));
window.addEventListener("resize", reachFrames);
