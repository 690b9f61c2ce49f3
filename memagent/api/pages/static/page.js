// Every form works by itself. This makes them smooth: the answer's page is put in place of this one, without a reload.
"use strict";

const parser = new DOMParser();

async function send(form, button) {
  const data = new FormData(form, button);
  const headers = { "X-Requested-With": "memagent" };
  if (form.method === "get") {
    const url = new URL(form.action);
    url.search = new URLSearchParams(data);
    return fetch(url, { headers });
  }
  const body = form.enctype === "multipart/form-data" ? data : new URLSearchParams(data);
  return fetch(form.action, { method: "POST", body, headers });
}

function replace(document_, selector) {
  const fresh = document_.querySelector(selector);
  const stale = document.querySelector(selector);
  if (!fresh || !stale) return false;
  stale.replaceChildren(...fresh.childNodes);
  return true;
}

function show(text, address) {
  const fresh = parser.parseFromString(text, "text/html");
  const toasted = fresh.querySelector("[data-toast]");
  replace(fresh, "#page");
  replace(fresh, "#toasts");
  replace(fresh, ".top");
  document.title = fresh.title;
  const clean = new URL(address);
  clean.searchParams.delete("done");
  clean.searchParams.delete("change");
  history.replaceState(null, "", clean);
  prepare();
  const focus = document.querySelector("#page [data-focus]") || (toasted && document.querySelector("#toasts button")) || document.querySelector("#page");
  focus.focus({ preventScroll: !focus.matches("[data-focus]") });
}

document.addEventListener("submit", async (event) => {
  const form = event.target;
  if (!form.hasAttribute("data-swap") && !form.hasAttribute("data-live")) return;
  event.preventDefault();
  const target = form.dataset.swap || form.dataset.live;
  if (target) return update(form, target);
  form.setAttribute("aria-busy", "true");
  try {
    const focusKey = event.submitter && event.submitter.getAttribute("role");
    const answer = await send(form, event.submitter);
    show(await answer.text(), answer.redirected ? answer.url : location.href);
    if (focusKey === "switch") document.querySelector("[role=switch]").focus();
  } catch {
    form.removeAttribute("aria-busy");
    form.submit(); // the browser says itself what is wrong with the connection
  }
});

// -- while something is typed ----------------------------------------------------------------------------------------

const latest = new WeakMap();

async function update(form, target) {
  const turn = (latest.get(form) || 0) + 1;
  latest.set(form, turn);
  document.querySelector(target).setAttribute("aria-busy", "true");
  try {
    const answer = await send(form);
    const text = await answer.text();
    if (latest.get(form) === turn) replace(parser.parseFromString(text, "text/html"), target);
  } finally {
    if (latest.get(form) === turn) document.querySelector(target).removeAttribute("aria-busy");
  }
}

document.addEventListener("input", (event) => {
  const form = event.target.form;
  if (!form || !form.dataset.live || event.target.type === "file") return;
  clearTimeout(form.waiting);
  form.waiting = setTimeout(() => update(form, form.dataset.live).catch(() => {}), Number(form.dataset.wait));
});

// -- files that are chosen or dropped --------------------------------------------------------------------------------

async function read(file, area) {
  area.value = await file.text();
  area.dispatchEvent(new Event("input", { bubbles: true }));
}

document.addEventListener("change", async (event) => {
  const input = event.target;
  if (!input.dataset.into || !input.files.length) return;
  await read(input.files[0], document.querySelector(input.dataset.into));
  input.value = ""; // the text is what is sent from here on
});

for (const kind of ["dragover", "dragleave", "drop"]) {
  document.addEventListener(kind, (event) => {
    const area = event.target.closest && event.target.closest("[data-drop]");
    if (!area) return;
    area.classList.toggle("over", kind === "dragover");
    if (kind === "dragover") event.preventDefault();
    if (kind === "drop" && event.dataTransfer.files.length) {
      event.preventDefault();
      read(event.dataTransfer.files[0], area);
    }
  });
}

// -- small things ----------------------------------------------------------------------------------------------------

document.addEventListener("click", (event) => {
  const close = event.target.closest("[data-close]");
  if (close) {
    close.closest("[data-toast]").remove();
    document.querySelector("#page").focus({ preventScroll: true });
  }
  const place = event.target.closest("[data-offset]");
  if (place) {
    event.preventDefault();
    select(document.querySelector("#yaml"), Number(place.dataset.offset), Number(place.dataset.end));
  }
});

function select(area, from, to) {
  // Places count characters, the browser counts halves of them.
  const characters = Array.from(area.value);
  const start = characters.slice(0, from).join("").length;
  area.focus();
  area.setSelectionRange(start, start + characters.slice(from, to).join("").length);
  const line = area.value.slice(0, start).split("\n").length;
  area.scrollTop = (line - 4) * parseFloat(getComputedStyle(area).lineHeight);
}

function prepare() {
  for (const each of document.querySelectorAll("[data-close]")) each.hidden = false;
  for (const each of document.querySelectorAll("[data-plain]")) each.hidden = true;
}

prepare();
