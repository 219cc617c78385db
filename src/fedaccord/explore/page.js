// Tells the server when the visitor goes back or forward; an address keeps its undo and redo. The
// browser's own undo is for what is typed and not sent yet: it would put old numbers into fields.
const address = () => ({ query: location.search, past: [], future: [], ...history.state });
window.addEventListener("popstate", () => emitEvent("address", address()));
// Has the keyboard and the pointer take a stable plan by its row.
const offerRows = () => document.querySelectorAll(".seen .report tbody tr").forEach((row, place) => {
  row.tabIndex = 0;
  row.style.cursor = "pointer";
  row.onclick = row.onkeydown = (event) => {
    if (event.type === "click" || event.key === "Enter") emitEvent("take", place + 1);
  };
});
// A tab that is open stays in sight in a window that becomes narrow.
window.addEventListener("resize", () =>
  document.querySelector(".q-tab--active")?.scrollIntoView({ block: "nearest", inline: "nearest" }));
// Charts have the colours of the page, also when the system turns dark.
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => emitEvent("redraw"));
let typed = null;
window.addEventListener("input", (event) => { typed = event.target });
window.addEventListener("change", () => { typed = null }, true);
window.addEventListener("keydown", (event) => {
  if (!event.ctrlKey || !"zy".includes(event.key) || event.target === typed) return;
  event.preventDefault();
  emitEvent("undo", event.key);
});
