// Tells the server when the visitor goes back or forward; an address keeps its undo and redo. The
// browser's own undo is for what is typed and not sent yet: it would put old numbers into fields.
const address = () => ({ query: location.search, past: [], future: [], ...history.state });
window.addEventListener("popstate", () => emitEvent("address", address()));
let typed = null;
window.addEventListener("input", (event) => { typed = event.target });
window.addEventListener("change", () => { typed = null }, true);
window.addEventListener("keydown", (event) => {
  if (!event.ctrlKey || !"zy".includes(event.key) || event.target === typed) return;
  event.preventDefault();
  emitEvent("undo", event.key);
});
