// Search runs in a Worker, and a page that was opened from disk (file://) may not start one: there a hidden frame stands in for it.
// This does what the package iframe-worker does for Material's offline plugin, which would ask unpkg.com for it.
"use strict";

class IFrameWorker extends EventTarget {
  constructor(url) {
    super();
    this.frame = document.createElement("iframe");
    this.frame.hidden = true;
    this.frame.title = "Search";
    document.body.append(this.frame);
    const inside = this.frame.contentWindow;
    // The script posts what it found to itself, as a worker does; here that reaches this object.
    inside.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
    inside.importScripts = (...scripts) => Promise.all(scripts.map((script) => this.load(script)));
    this.ready = this.load(url);
  }

  load(url) {
    return new Promise((resolve, reject) => {
      const script = this.frame.contentDocument.createElement("script");
      script.src = url;
      script.onload = resolve;
      script.onerror = () => reject(new Error(`${url} cannot be loaded`));
      this.frame.contentDocument.body.append(script);
    });
  }

  postMessage(data) {
    this.ready.then(() => this.frame.contentWindow.dispatchEvent(new MessageEvent("message", { data })));
  }

  terminate() {
    this.frame.remove();
  }
}

if (location.protocol === "file:") {
  window.IFrameWorker = IFrameWorker;
  window.Worker = IFrameWorker;
}
