// Browsers start no worker for a page that is opened from disk, and the theme searches in a worker. There, this class takes
// its place: the script runs in a hidden frame, and messages pass between the two. The theme asks for it by its name.
if (location.protocol === "file:") {
  window.IFrameWorker = window.Worker = class extends EventTarget {
    #waiting = [];
    #frame = document.createElement("iframe");
    #ready = false;

    constructor(url) {
      super();
      this.#frame.hidden = true;
      document.body.append(this.#frame);
      const inside = this.#frame.contentWindow;
      inside.postMessage = data => setTimeout(() => this.dispatchEvent(new MessageEvent("message", {data})));
      const script = this.#frame.contentDocument.createElement("script");
      script.src = url;
      script.addEventListener("load", () => {
        this.#ready = true;
        this.#waiting.splice(0).forEach(data => this.postMessage(data));
      });
      this.#frame.contentDocument.body.append(script);
    }

    postMessage(data) {
      if (this.#ready) this.#frame.contentWindow.dispatchEvent(new MessageEvent("message", {data}));
      else this.#waiting.push(data);
    }

    terminate() {
      this.#frame.remove();
    }
  };
}
