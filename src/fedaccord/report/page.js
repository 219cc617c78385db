"use strict";
(() => {
  const root = document.documentElement;
  const KEPT = "fedaccord-theme";
  const dark = matchMedia("(prefers-color-scheme: dark)");

  // A page opened from a file may not be allowed to keep anything.
  const kept = (theme) => {
    try {
      if (theme) localStorage.setItem(KEPT, theme);
      return localStorage.getItem(KEPT);
    } catch {
      return null;
    }
  };
  const wanted = kept();
  if (wanted === "dark" || wanted === "light") root.dataset.theme = wanted;
  const theme = () => root.dataset.theme || (dark.matches ? "dark" : "light");

  const element = (tag, properties = {}, ...children) => {
    const made = Object.assign(document.createElement(tag), properties);
    made.append(...children);
    return made;
  };

  const readyTheme = () => {
    const button = document.querySelector(".theme");
    const label = () => {
      button.textContent = theme() === "dark" ? "Light colours" : "Dark colours";
    };
    button.addEventListener("click", () => {
      root.dataset.theme = theme() === "dark" ? "light" : "dark";
      kept(root.dataset.theme);
      label();
    });
    dark.addEventListener("change", label);
    label();
    button.hidden = false;
  };

  const readyCopy = () => {
    const button = document.querySelector(".copy");
    if (!button) return;
    const code = document.querySelector(".command code");
    const status = document.querySelector(".command [role=status]");
    const byHand = () => {
      getSelection().selectAllChildren(code);
      return document.execCommand("copy");
    };
    button.addEventListener("click", async () => {
      let done;
      try {
        await navigator.clipboard.writeText(code.textContent);
        done = true;
      } catch {
        done = byHand();
      }
      button.textContent = done ? "Copied" : "Selected: copy it with Ctrl-C";
      status.textContent = button.textContent;
      setTimeout(() => {
        button.textContent = "Copy";
        status.textContent = "";
      }, 2500);
    });
    button.hidden = false;
  };

  const plain = (text) => text.normalize("NFKD").replace(/\p{M}/gu, "").toLowerCase();
  const number = (text) => {
    const read = text.replaceAll(",", "").replace("−", "-").replace("∞", "Infinity");
    return read.trim() === "" ? NaN : Number(read);
  };
  const words = new Intl.Collator("en", { numeric: true, sensitivity: "base" });

  // Numbers first, by size; then words; what is empty last, whichever way round.
  const key = (cell) => {
    const text = cell.textContent.trim();
    const value = number(cell.dataset.key ?? text);
    if (text === "–" || text === "") return { kind: 2, value: 0, text };
    return Number.isNaN(value) ? { kind: 1, value: 0, text } : { kind: 0, value, text };
  };
  const compare = (a, b, sign) => {
    if (a.kind !== b.kind) return a.kind - b.kind;
    if (a.kind === 0) return sign * (a.value < b.value ? -1 : a.value > b.value ? 1 : 0);
    return sign * words.compare(a.text, b.text);
  };

  const readySorting = (table) => {
    const body = table.tBodies[0];
    const original = [...body.rows];
    // Of a few rows everything is seen at a glance.
    if (original.length <= 7) return;
    const heads = [...table.tHead.rows[0].cells];
    const NEXT = { none: "ascending", ascending: "descending", descending: "none" };
    heads.forEach((head, column) => {
      const button = element("button", { type: "button", className: "sort" });
      button.append(...head.childNodes);
      head.append(button);
      head.setAttribute("aria-sort", "none");
      button.addEventListener("click", () => {
        const order = NEXT[head.getAttribute("aria-sort")];
        heads.forEach((other) => other.setAttribute("aria-sort", "none"));
        head.setAttribute("aria-sort", order);
        let rows = original;
        if (order !== "none") {
          const sign = order === "ascending" ? 1 : -1;
          const keyed = original.map((row) => [key(row.cells[column]), row]);
          rows = keyed.sort((a, b) => compare(a[0], b[0], sign)).map(([, row]) => row);
        }
        body.append(...rows);
      });
    });
  };

  const readyFinding = (holder) => {
    const rows = [...holder.querySelector("table").tBodies[0].rows];
    const texts = rows.map((row) => plain(row.textContent));
    const id = `find-${holder.querySelector("caption").id}`;
    const input = element("input", { type: "search", id, autocomplete: "off", spellcheck: false });
    const count = element("output");
    count.setAttribute("for", id);
    const show = () => {
      const wanted = plain(input.value.trim());
      let shown = 0;
      rows.forEach((row, n) => {
        row.hidden = !texts[n].includes(wanted);
        shown += row.hidden ? 0 : 1;
      });
      count.textContent = wanted ? `${shown} of ${rows.length} rows` : `${rows.length} rows`;
    };
    input.addEventListener("input", show);
    const label = element("label", { htmlFor: id, textContent: "Find in this table" });
    holder.prepend(element("div", { className: "find" }, label, input, count));
    show();
  };

  // Only what scrolls needs to be reached by the keyboard.
  const readyScrolling = () => {
    const regions = document.querySelectorAll(".scroll, .canvas[tabindex]");
    const seen = new ResizeObserver((changes) => {
      for (const { target } of changes) {
        const scrolls =
          target.scrollWidth > target.clientWidth + 1 || target.scrollHeight > target.clientHeight + 1;
        if (scrolls) target.tabIndex = 0;
        else target.removeAttribute("tabindex");
        const cut = target.scrollWidth > target.clientWidth + 1;
        const names = target.querySelector("th");
        target.parentElement.classList.toggle("cut", cut);
        // A wide first column would cover what scrolls past it.
        target.parentElement.classList.toggle("pinned", cut && names?.offsetWidth < 0.45 * target.clientWidth);
      }
    });
    regions.forEach((region) => seen.observe(region));
  };

  document.addEventListener("DOMContentLoaded", () => {
    readyTheme();
    readyCopy();
    document.querySelectorAll("table").forEach(readySorting);
    document.querySelectorAll(".long-table").forEach(readyFinding);
    readyScrolling();
  });
})();
