"use strict";

// Everything works without this script. It leaves only those programs that suit the database,
// and follows a search as it changes instead of loading the page again and again.

const SHOWN = {
  queued: "waiting",
  admitting: "about to start",
  submitting: "about to start",
  running: "running",
  collecting: "saving the result",
};

function offerSuitablePrograms(form) {
  const database = form.elements.database;
  const program = form.elements.program;
  const suit = () => {
    const type = database.selectedOptions[0]?.dataset.type;
    for (const option of program.options) {
      option.hidden = option.disabled = option.dataset.type !== type;
    }
    if (program.selectedOptions[0]?.disabled ?? true) {
      program.value = [...program.options].find((option) => !option.disabled).value;
    }
  };
  database.addEventListener("change", suit);
  suit();
  form.addEventListener("submit", () => {
    form.querySelector("button").disabled = true;
  });
  // the browser may show the form again as it was left
  window.addEventListener("pageshow", () => {
    form.querySelector("button").disabled = false;
    suit();
  });
}

function words(search) {
  if (search.position) {
    return `Place ${search.position} in the queue` + (search.reason ? `: ${search.reason}` : "");
  }
  return search.reason ?? "";
}

function show(search) {
  const state = document.getElementById("state");
  state.textContent = SHOWN[search.state] ?? search.state;
  state.className = `badge ${search.state}`;
  document.getElementById("why").textContent = words(search);
}

// Only while the page is seen: a browser opens no more than six connections to one server.
function follow(address) {
  let source = null;
  const listen = () => {
    source?.close();
    if (document.hidden) return;
    source = new EventSource(address);
    source.addEventListener("search", (event) => show(JSON.parse(event.data)));
    source.addEventListener("end", () => {
      source.close();
      window.location.reload();
    });
  };
  document.addEventListener("visibilitychange", listen);
  listen();
}

const ask = document.getElementById("ask");
if (ask) offerSuitablePrograms(ask);

const followed = document.querySelector("[data-follow]");
if (followed) follow(followed.dataset.follow);

document.getElementById("problem")?.focus();

for (const time of document.querySelectorAll("time")) {
  time.title = time.textContent;
  time.textContent = new Date(time.dateTime).toLocaleString();
}
