// Progressive enhancement only: every page reads and posts without this file. It never builds HTML from strings, never decides
// anything, and never changes a value a person has set, with two stated exceptions (the radio that says whether a tool list is meant, and
// a text that a chosen file replaces).
"use strict";
(() => {
  // Ticking a tool means "only the ticked ones"; picking another mode means "every tool this mode allows" again.
  function follow(target) {
    const form = target.form;
    if (!form) return;
    const choose = (value) => {
      const radio = form.querySelector(`input[name="tools_supplied"][value="${value}"]`);
      if (radio) radio.checked = true;
    };
    if (target.name === "tools") choose("1");
    if (target.name === "mode") choose("");
    // The same on a profile, where each connection has its own list.
    const [kind, key] = target.name.split(/\.(.*)/);
    if (kind !== "tools" || !key) return;
    const only = form.querySelector(`input[name="listed.${CSS.escape(key)}"][value="1"]`);
    if (only) only.checked = true;
  }
  document.addEventListener("change", (event) => {
    if (event.target instanceof HTMLInputElement) follow(event.target);
  });

  // A second press while the first is on its way would only be answered with "this changed while you read".
  const sent = new WeakSet();
  document.addEventListener("submit", (event) => {
    const form = event.target;
    if (event.defaultPrevented || form.method !== "post") return;
    if (sent.has(form)) {
      event.preventDefault();
      return;
    }
    sent.add(form);
    form.setAttribute("aria-busy", "true");
  });
  window.addEventListener("pageshow", (event) => {
    if (event.persisted) window.location.reload(); // a page from the back-forward cache shows a state that has passed
  });

  // A link to something folded unfolds it, so that "read them first" leads to the text and not to a closed triangle.
  function unfold(hash) {
    if (hash.length < 2) return;
    const place = document.getElementById(decodeURIComponent(hash.slice(1)));
    if (!place) return;
    for (const d of place.querySelectorAll("details")) d.open = true;
    for (let d = place.closest("details"); d; d = d.parentElement?.closest("details")) d.open = true;
  }
  document.addEventListener("click", (event) => {
    const link = event.target instanceof Element && event.target.closest('a[href^="#"]');
    if (link) unfold(link.hash);
  });

  // Time left in words, counted from the server's clock and our own elapsed time: the visitor's clock may be wrong.
  function words(ms) {
    if (ms <= 0) return "no time";
    const minutes = Math.floor(ms / 60000);
    if (minutes < 1) return "less than 1 min";
    if (minutes < 120) return `${minutes} min`;
    const hours = Math.floor(minutes / 60);
    return hours < 48 ? `${hours} h` : `${Math.floor(hours / 24)} days`;
  }
  const seen = new WeakMap();
  function count() {
    for (const el of document.querySelectorAll("time[data-now]")) {
      if (!seen.has(el)) seen.set(el, performance.now());
      const left = Date.parse(el.dateTime) - Date.parse(el.dataset.now) - (performance.now() - seen.get(el));
      const text = words(left);
      if (el.textContent !== text) el.textContent = text;
    }
  }
  for (const el of document.querySelectorAll("time[data-now]")) seen.set(el, performance.now());
  setInterval(count, 15000);
  document.addEventListener("htmx:after:swap", count);

  // Copy buttons exist only where copying works.
  function offerCopy() {
    if (!navigator.clipboard) return;
    for (const b of document.querySelectorAll("button[data-copy][hidden]")) b.hidden = false;
  }
  offerCopy();
  document.addEventListener("htmx:after:swap", offerCopy);
  document.addEventListener("click", (event) => {
    const button = event.target instanceof Element && event.target.closest("button[data-copy]");
    const from = button && document.getElementById(button.dataset.copy);
    if (!from) return;
    navigator.clipboard.writeText(from.textContent).then(
      () => { button.lastChild.textContent = "Copied"; },
      () => { button.lastChild.textContent = "Select and copy by hand"; },
    );
  });

  // A file a person chooses fills a text, as if it had been pasted. Without this they paste it.
  for (const input of document.querySelectorAll("input[type=file][data-fills]")) {
    input.parentElement.hidden = false;
    input.addEventListener("change", async () => {
      const [file] = input.files;
      const text = document.getElementById(input.dataset.fills);
      if (!file || !text) return;
      if (file.size > Number(input.dataset.most)) {
        text.setCustomValidity(`The file has ${file.size} bytes; it may have ${input.dataset.most}.`);
        text.reportValidity();
        text.setCustomValidity("");
      } else {
        text.value = await file.text();
        text.dispatchEvent(new Event("input", { bubbles: true }));
      }
      input.value = "";
    });
  }

  // A toast stays until the next action.
  document.addEventListener("htmx:before:request", (event) => {
    const method = event.detail?.ctx?.request?.method;
    if (method && method.toUpperCase() !== "GET") document.getElementById("toasts")?.replaceChildren();
  });
})();
